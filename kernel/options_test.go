package kernel_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/render"
	"tgc/runtime/interp"
	"tgc/target"
)

// optionCases has for each Opt that chooses what passes over programs or renderers do a
// plan which it changes.
var optionCases = []struct {
	opt, plan string
	build     func(b *builder) *ir.UOp
}{
	{"AHEAD 16", manyRows, longRows},
	{"ORDER 4", manyRows, longRows},
	{"ORDER 255", manyRows, longRows},
	{"REFILL off", "VECTOR r0 16; WARP r0 32; UPCAST s0 24; PRELOAD p2; FMA", func(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 24, 512, false) }},
	{"REREAD never", rowsReread, heldRows},
	{"REREAD always", "VECTOR r0 4; WARP r0 32; UPCAST s0 2; ROLL s0; STAGE r0; PRELOAD p2; FMA", shortRows},
	{"SPARE 1", rowsReread, heldRows},
	{"ADVANCE 1", "VECTOR r0 4; WARP r0 32; LOCAL s0 4; STAGE r0; FMA; PRELOAD p2", heldRows},
	{"LATE 1000", "VECTOR r0 16; WARP r0 32; UPCAST s0 24; PRELOAD p2; FMA", dividedRows},
	{"BLOCKS 8", manyRows, longRows},
	{"BLOCKS 1", "LOCAL s0 4; WARP r0 32", longRows},
	{"REGS 64", manyRows, longRows},
	{"TRIGGER loads", manyRows, longRows},
	{"TRIGGER wait", manyRows, longRows},
	{"TRIGGER end", "WARP r0 32", longRows},
	{"TURNS 1", floatTiles, tiledFloats},
	{"PANEL 2", floatTiles, tiledFloats},
	{"ROTATE early", rowsLoadedAhead, packedRows},
	{"ROTATE late", "VECTOR r0 4; WARP r0 32; UPCAST s0 2; ROLL s0; STAGE r0; PRELOAD p2; FMA; REREAD always", shortRows},
	{"ROTATE off", rowsLoadedAhead, packedRows},
	{"KEEP 200", loopAlongARow, partsOfRows},
	{"UNITS plain", "", maskedRows},
	{"UNITS plain", "ROLL s1", maskedRows},
	{"LINES 2", "VECTOR r0 32; UNROLL r0 8; PREFETCH p2 8192; FMA", longRows},
	{"PARTS 2", "GROUP r0 4; LOCAL s0 3", longRows},
	{"CHAINS 2", "UNROLL r0 8", func(b *builder) *ir.UOp {
		return masked(b, "max", 8, 64, 8, func(q, n, _ *ir.UOp) *ir.UOp { return b.Lt(n, b.i(64)) })
	}},
	{"SUMS apart", "UPCAST s0 2; VECTOR r0 16; FMA", func(b *builder) *ir.UOp { return gatedTokens(b, "Q6_K", 2, 8, 512) }},
	{"FILL 1", "UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; UPCAST s1 2; STAGE s1; MMA r1; FMA", func(b *builder) *ir.UOp { return superblockMatmul(b, "Q6_K", 8, 32, 512) }},
	{"LOADS 1", "VECTOR r0 8; WARP r0 8; GROUP r0 4; STAGE r0", heldRows},
	{"INLINE 1", heldGroups, biasedGroups},
	{"CARVEOUT 32", manyRows, longRows},
	{"CACHE p2 const", manyRows, longRows},
	{"CACHE p2 stream", manyRows, longRows},
	{"CACHE p2 wide", manyRows, longRows},
	{"CACHE p2 l2", "WARP r0 32; UPCAST s0 2", longRows},
}

func longRows(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 12, 1024, false) }

func heldRows(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 12, 2048, true) }

func maskedRows(b *builder) *ir.UOp {
	return masked(b, "sum", 8, 64, 8, func(q, n, _ *ir.UOp) *ir.UOp { return b.Lt(n, b.Add(q, b.i(1))) })
}

func shortRows(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 12, 128, true) }

func packedRows(b *builder) *ir.UOp { return packedMatvec(b, "Q6_K", 12, 512, true) }

func partsOfRows(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 12, 1536, false) }

const floatTiles = "UPCAST s0 2; LOCAL s0 4; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s0; STAGE s1; MMA r0; FMA"

func tiledFloats(b *builder) *ir.UOp { return floatMatmul(b, ir.F32, 16, 32, 64) }

// biasedGroups are groups of which two operations make each element of the first stage.
func biasedGroups(b *builder) *ir.UOp {
	sink := groups(b, 8, 16, 32)
	with := make(map[*ir.UOp]*ir.UOp)
	for _, u := range ir.Toposort(sink) {
		if u.Op == ir.OpStage && u.Src[0].Op == ir.OpMul {
			with[u.Src[0]] = b.Mul(b.Add(u.Src[0].Src[0], b.f(1)), u.Src[0].Src[1])
		}
	}
	return b.Substitute(sink, with)
}

// dividedRows are one over the results of a matvec.
func dividedRows(b *builder) *ir.UOp {
	store := packedMatvec(b, "Q8_0", 24, 512, false).Src[0]
	return b.Substitute(b.sink(store), map[*ir.UOp]*ir.UOp{store.Src[1]: b.Unary(ir.OpRecip, store.Src[1])})
}

// An option changes the code on every target that accepts it, and no value; and every
// one of them has a case.
func TestOptionsOfPrograms(t *testing.T) {
	tried := make(map[string]bool) // kind and target
	for _, c := range optionCases {
		both, err := plan.Parse(c.plan + "; " + c.opt)
		if err != nil {
			t.Fatal(err)
		}
		without := plan.Plan{Opts: both.Opts[:len(both.Opts)-1]}
		kind := both.Opts[len(both.Opts)-1].Kind
		for _, desc := range optionTargets(t) {
			if !kind.On(desc) || plan.Legality(c.build(newBuilder()), without, desc) != nil {
				continue
			}
			tried[kind.String()+desc.Name] = true
			usual, _, before := optionSource(t, c.build, c.plan, desc)
			chosen, p, after := optionSource(t, c.build, c.plan+"; "+c.opt, desc)
			if chosen == usual {
				t.Errorf("%s changes nothing of %s on %s", c.opt, c.plan, desc.Name)
			}
			if !slices.EqualFunc(before, after, bytes.Equal) {
				t.Errorf("%s changes values of %s on %s", c.opt, c.plan, desc.Name)
			}
			if q, err := program.Parse(program.Print(p)); err != nil || program.Print(q) != program.Print(p) {
				t.Errorf("%s: %v, or the text form differs from itself", c.opt, err)
			}
		}
	}
	for _, kind := range plan.OptKinds() {
		for _, desc := range optionTargets(t) {
			if kind == plan.CHUNK { // carried out by runtime/cpu, which tests it
				continue
			}
			if (kind.Sets() != program.NoOption || kind == plan.CACHE) && kind.On(desc) && !tried[kind.String()+desc.Name] {
				t.Errorf("no case of %s on %s", kind, desc.Name)
			}
		}
	}
}

func optionTargets(t *testing.T) []*target.Desc {
	var list []*target.Desc
	for _, name := range []string{"ptx:sm_75", "ptx:sm_87", "ptx:sm_90", "cuda:sm_90", "llvm:x86-64-v3"} {
		desc, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, desc)
	}
	return list
}

// optionSource lowers a kernel, compares its values with those of the reference and of
// the emulator, and gives its source and what is in all buffers after it.
func optionSource(t *testing.T, build func(b *builder) *ir.UOp, text string, desc *target.Desc) (string, *program.Program, [][]byte) {
	b := newBuilder()
	sink := build(b)
	p := lowerText(t, b, sink, text, desc)
	compare(t, b.Arena, sink, p, plan.Plan{}, nil)
	if desc.Kind == target.GPU {
		if err := program.VerifyGPU(p); err != nil {
			t.Fatal(err)
		}
		emulate(t, sink, p, nil)
	}
	var buffers [][]byte
	data := makeBuffers(t, sink, nil, rand.New(rand.NewPCG(1, 2)))
	args := make([]interp.Arg, len(p.Params))
	for i, param := range p.Params {
		args[i].Bytes = data.bytes(param.Slot)
		buffers = append(buffers, args[i].Bytes)
	}
	if err := interp.RunProgram(p, args, 0, p.Units()); err != nil {
		t.Fatal(err)
	}
	r, err := render.For(desc)
	if err != nil {
		t.Fatal(err)
	}
	source, err := r.Source(p)
	if err != nil {
		t.Fatal(err)
	}
	return source, p, buffers
}

// drawOptions draws Opts that choose what passes over programs do.
func drawOptions(t *rapid.T) (list []plan.Opt) {
	for _, kind := range plan.OptKinds() {
		if option := kind.Sets(); option != program.NoOption && rapid.Bool().Draw(t, "chosen") {
			list = append(list, plan.Opt{Kind: kind, Amount: int64(rapid.IntRange(option.Least(), option.Most()).Draw(t, "value"))})
		}
	}
	return list
}
