package cuda

import (
	"fmt"
	"math"
	"strings"

	"tgc/ir/program"
	"tgc/render/gpu"
	"tgc/target"
)

// Render prints a verified program for desc, a GPU. What CUDA C lacks is
// expanded here (gpu.Expand).
func Render(p *program.Program, desc *target.Desc, opt gpu.Options) (*gpu.Kernel, error) {
	if desc == nil || desc.Kind != target.GPU || desc.SM == 0 {
		return nil, fmt.Errorf("render/cuda: kernel %s: the target is no NVIDIA GPU", p.Name)
	}
	if err := program.VerifyGPU(p); err != nil {
		return nil, fmt.Errorf("render/cuda: %w", err)
	}
	basic := gpu.Expand(p, desc)
	r := &renderer{
		program: basic,
		desc:    desc,
		opt:     opt,
		counts:  make(map[string]int),
		used:    make(map[string]bool),
		values:  make([]*held, basic.Values),
		bounds:  gpu.BoundsOf(basic),
		arrays:  gpu.Arrays(basic),
		sums:    make(gpu.Sums),
		origin:  make(map[*program.Value]*program.Value),
		offsets: gpu.ByteOffsets(basic),
		added:   make(map[*program.Value]*program.Value),
		tables:  make(map[*program.Value]*program.Param),
		access:  make(map[*program.Value]*program.Param),
		consts:  make(map[*program.Value]*program.Instr),
	}
	k, err := r.kernel()
	if err != nil {
		return nil, fmt.Errorf("render/cuda: kernel %s: %w", p.Name, err)
	}
	return k, nil
}

type renderer struct {
	program *program.Program // expanded
	desc    *target.Desc
	opt     gpu.Options

	body   strings.Builder
	module strings.Builder // tables
	counts map[string]int  // variables, by prefix
	used   map[string]bool // helpers
	depth  int             // of braces inside of the kernel's

	values  []*held
	bounds  map[*program.Value]gpu.Interval
	arrays  map[*program.Value]gpu.Array // Allocas that need no memory
	sums    gpu.Sums
	origin  map[*program.Value]*program.Value // of casts from u8
	scopes  gpu.Scopes[operand]
	tables  map[*program.Value]*program.Param // by pointer
	access  map[*program.Value]*program.Param // buffers by pointer
	consts  map[*program.Value]*program.Instr
	shared  int64 // bytes laid out
	local   int64
	waited  bool                              // a WaitGrid was printed
	offsets map[*program.Value]gpu.Offset     // of conversions of bytes
	added   map[*program.Value]*program.Value // sums that a conversion holds already
}

const sharedName, localName = "shared_memory", "local_memory"

func (r *renderer) kernel() (*gpu.Kernel, error) {
	p := r.program
	if p.Units() > math.MaxInt32 {
		return nil, fmt.Errorf("%d blocks, want at most %d", p.Units(), math.MaxInt32)
	}
	waits := gpu.HasOp(p.Body, program.WaitGrid)
	k := &gpu.Kernel{
		Entry: gpu.EntryName(p.Name), Blocks: p.Units(), Block: gpu.BlockShape(p.Block),
		WaitsGrid: waits && r.desc.SM >= 90,
	}
	r.scopes.Open()
	for i := range p.Params {
		r.param(k, i)
	}
	if err := r.block(p.Body); err != nil {
		return nil, err
	}
	r.scopes.Close()
	k.Shared, k.Dynamic = int(r.shared), r.shared > gpu.StaticShared
	if k.Shared > r.desc.SharedBytes {
		return nil, fmt.Errorf("%d bytes of shared memory, %s has %d a block", k.Shared, r.desc.Name, r.desc.SharedBytes)
	}
	k.Text = r.text(k)
	return k, nil
}

// text puts the translation unit together around the body.
func (r *renderer) text(k *gpu.Kernel) string {
	var b strings.Builder
	r.helpers(&b)
	b.WriteString(r.module.String())
	if k.Dynamic {
		fmt.Fprintf(&b, "extern __shared__ __align__(128) char %s[];\n\n", sharedName)
	}
	threads := k.Block[0] * k.Block[1] * k.Block[2]
	limits := fmt.Sprint(threads)
	if r.opt.MinBlocks > 0 {
		limits += fmt.Sprintf(", %d", r.opt.MinBlocks)
	}
	fmt.Fprintf(&b, "extern \"C\" __global__ void __launch_bounds__(%s) %s(", limits, k.Entry)
	for n, i := range k.Params {
		if n > 0 {
			b.WriteString(", ")
		}
		b.WriteString(r.parameter(i))
	}
	b.WriteString(")\n{\n")
	if r.shared > 0 && !k.Dynamic {
		fmt.Fprintf(&b, "\t__shared__ __align__(128) char %s[%d];\n", sharedName, r.shared)
	}
	if r.local > 0 {
		fmt.Fprintf(&b, "\t__align__(16) char %s[%d];\n", localName, r.local)
	}
	b.WriteString(r.body.String())
	b.WriteString("}\n")
	return b.String()
}

// line prints a line of the body.
func (r *renderer) line(format string, args ...any) {
	r.body.WriteString(strings.Repeat("\t", r.depth+1))
	fmt.Fprintf(&r.body, format, args...)
	r.body.WriteByte('\n')
}

// begin and end print the braces around a block and keep its scope.
func (r *renderer) begin(format string, args ...any) {
	r.line(format+" {", args...)
	r.depth++
	r.scopes.Open()
}

func (r *renderer) end(closing string) {
	r.scopes.Close()
	r.depth--
	r.line("%s", closing)
}

func parameterName(i int) string { return fmt.Sprintf("p%d", i) }

// parameter declares a parameter. Pointers are to bytes, and are not restrict:
// the compiler would take that for leave to read what a previous kernel writes
// through the cache for constants.
func (r *renderer) parameter(i int) string {
	switch p := &r.program.Params[i]; {
	case p.Kind == program.ParamVar:
		return "long long " + parameterName(i)
	case p.Write:
		return "char* " + parameterName(i)
	}
	return "const char* " + parameterName(i)
}

func (r *renderer) param(k *gpu.Kernel, i int) {
	p := &r.program.Params[i]
	switch p.Kind {
	case program.ParamTable:
		r.table(i, p)
		return
	case program.ParamVar:
		v := operand{name: parameterName(i), t: int64Type}
		if r.narrow(p.Value) {
			v = r.let(int32Type, "(int)%s", v.name)
		}
		r.set(p.Value, []operand{v})
	default:
		r.values[p.Value.ID] = &held{address: &address{base: parameterName(i), fixed: !p.Write}}
		r.access[p.Value] = p
	}
	k.Params = append(k.Params, i)
}

// table puts constant bytes into the module. They are global rather than
// __constant__: that cache serves one address a cycle, and lanes look up
// different ones.
func (r *renderer) table(i int, p *program.Param) {
	name := fmt.Sprintf("table_%d", i)
	fmt.Fprintf(&r.module, "static __device__ const __align__(%d) unsigned char %s[%d] = {", min(max(p.Align, 16), 128), name, max(len(p.Table), 1))
	for j, c := range []byte(p.Table) {
		switch {
		case j%16 == 0:
			r.module.WriteString("\n\t")
		default:
			r.module.WriteByte(' ')
		}
		fmt.Fprintf(&r.module, "%d,", c)
	}
	r.module.WriteString("\n};\n\n")
	base := r.name("t")
	r.line("const char* %s = (const char*)%s;", base, name)
	r.values[p.Value.ID] = &held{address: &address{base: base, fixed: true}}
	r.tables[p.Value] = p
}

// block renders the instructions of a block; yields are left to the caller.
func (r *renderer) block(b *program.Block) error { return gpu.Each(b, r.instr) }

func (r *renderer) instr(in *program.Instr) error {
	switch in.Op {
	case program.Const, program.ConstLanes, program.Iota:
		r.constant(in)
	case program.Alu:
		return r.alu(in)
	case program.Broadcast, program.Extract, program.Insert, program.Shuffle, program.Concat, program.FoldLanes:
		return r.movement(in)
	case program.PtrAdd:
		r.ptrAdd(in)
	case program.Load, program.Store, program.Gather, program.Scatter, program.Guarded, program.Prefetch, program.Alloca:
		return r.memory(in)
	case program.For:
		return r.loop(in)
	case program.If:
		return r.branch(in)
	case program.GridLoop:
		return r.grid(in)
	case program.Yield:
	default:
		return r.threads(in)
	}
	return nil
}

// constant holds literals, which are printed where they are used.
func (r *renderer) constant(in *program.Instr) {
	r.consts[in.Result] = in
	var lanes []operand
	for _, bits := range gpu.ConstantBits(in) {
		lanes = append(lanes, operand{bits: bits, t: r.typeOf(in.Result)})
	}
	r.set(in.Result, lanes)
}
