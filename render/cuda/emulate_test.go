package cuda

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"tgc/internal/programtest"
	"tgc/internal/ptxemu"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/render/gpu"
	"tgc/render/gpu/gputest"
	"tgc/render/ptx"
	"tgc/runtime/interp"
	"tgc/target"
)

// What the compiler makes of the text is run on the PTX interpreter, so these
// tests skip where NVRTC is absent.

// together compiles several kernels at once: a namespace keeps the helpers of
// each apart, the entries' names must differ.
func together(t testing.TB, arch string, kernels []*gpu.Kernel) *ptxemu.Module {
	t.Helper()
	var text strings.Builder
	for i, k := range kernels {
		fmt.Fprintf(&text, "namespace kernel_%d {\n%s}\n", i, k.Text)
	}
	ptx, err := compiler(t).Compile(text.String(), arch)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ptxemu.Parse(ptx)
	if err != nil {
		t.Fatalf("%v\n%s", err, ptx)
	}
	return m
}

// renamed is a program under a name of its own.
func renamed(p *program.Program, i int) *program.Program {
	out := *p
	out.Name = fmt.Sprintf("%s_%d", p.Name, i)
	return &out
}

// Every elementwise op on every dtype gives what ir.EvalScalar gives.
func TestElementwiseAgainstEvalScalar(t *testing.T) {
	compiler(t)
	r := rand.New(rand.NewPCG(1, 2))
	for a, arch := range architectures {
		var cases []programtest.Case
		var kernels []*gpu.Kernel
		for i, c := range programtest.Cases() {
			if i%len(architectures) != a {
				continue
			}
			c.Program = renamed(c.Program, i)
			desc := describe(t, arch)
			k, err := Render(opt.Expand(c.Program, desc), desc, gpu.Options{})
			if err != nil {
				t.Fatal(err)
			}
			cases, kernels = append(cases, c), append(kernels, k)
		}
		m := together(t, arch, kernels)
		for i, c := range cases {
			err := c.Check(r, 2, func(list [][]byte) error {
				buffers := make(map[int][]byte)
				for slot, b := range list {
					buffers[slot] = b
				}
				return gputest.RunModule(c.Program, kernels[i], m, buffers, nil, 1)
			})
			if err != nil {
				t.Errorf("%s: %v\n%s", arch, err, kernels[i].Text)
			}
		}
	}
}

// Random programs give the interpreter's bits.
func TestRandomProgramsAgainstInterpreter(t *testing.T) {
	compiler(t)
	const each = 6
	for a, arch := range architectures {
		var programs []*program.Program
		var stored [][]programtest.Stored
		var kernels []*gpu.Kernel
		for i := range each {
			p, s := programtest.Generate(uint64(a*each+i), 40)
			p = renamed(p, i)
			desc := describe(t, arch)
			k, err := Render(opt.Expand(p, desc), desc, gpu.Options{Persistent: i%2 == 1})
			if err != nil {
				t.Fatal(err)
			}
			programs, stored, kernels = append(programs, p), append(stored, s), append(kernels, k)
		}
		m := together(t, arch, kernels)
		for i, p := range programs {
			compare(t, p, kernels[i], m, stored[i], uint64(a*each+i))
		}
	}
}

func compare(t *testing.T, p *program.Program, k *gpu.Kernel, m *ptxemu.Module, stores []programtest.Stored, seed uint64) {
	t.Helper()
	const n = 3
	want := programtest.Inputs(rand.New(rand.NewPCG(seed, 9)))
	got := make(map[int][]byte)
	for slot, b := range want {
		got[slot] = append([]byte(nil), b...)
	}
	args := make([]interp.Arg, len(p.Params))
	for i := range p.Params {
		args[i] = interp.Arg{Bytes: want[p.Params[i].Slot], Int64: n}
	}
	if err := interp.RunProgram(p, args, 0, p.Units()); err != nil {
		t.Fatal(err)
	}
	if err := gputest.RunModule(p, k, m, got, map[string]int64{"n": n}, seed); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, k.Text)
	}
	for _, s := range stores {
		size := int64(s.Value.Type.Lanes * s.Value.Type.Elem.Size())
		for unit := range int64(2) {
			at := s.Offset + unit*programtest.OutputBytes/2
			x, y := want[programtest.OutputSlot][at:at+size], got[programtest.OutputSlot][at:at+size]
			if lane, same := programtest.SameLanes(s.Value.Type.Elem, x, y); !same {
				t.Fatalf("seed %d, unit %d: %s lane %d: got %x, want %x\n%s\n%s", seed, unit, s.Value, lane, y, x, program.Print(p), k.Text)
			}
		}
	}
}

// Threads, warps and blocks: every golden program gives the bits of render/ptx's
// module on the same contents.
func TestGoldenEqualsPTX(t *testing.T) {
	c := compiler(t)
	eachGolden(t, func(t *testing.T, _, arch string, _ *txtar.Archive, p *program.Program) {
		desc := describe(t, arch)
		k, err := Render(p, desc, gpu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := c.Compile(k.Text, known(arch))
		if err != nil {
			t.Fatal(err)
		}
		reference, err := ptx.Render(p, desc, gpu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := gputest.Fill(p, rand.New(rand.NewPCG(3, 1)))
		got := gputest.Fill(p, rand.New(rand.NewPCG(3, 1)))
		vars := map[string]int64{"n": 2}
		if err := gputest.Run(p, reference, reference.Text, want, vars, 1); err != nil {
			t.Fatal(err)
		}
		if err := gputest.Run(p, k, text, got, vars, 2); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("buffers differ (-ptx +cuda):\n%s", diff)
		}
	})
}

// known is an architecture as compilers of any age know it: what only the "a" form of one has is assembly of their own to them.
func known(arch string) string { return strings.TrimSuffix(arch, "a") }

// Approximations stand where the target asks for them.
func TestApproxMath(t *testing.T) {
	for op, want := range approximations {
		p := programtest.Elementwise(op, ir.F32, ir.F32)
		for _, approx := range []bool{false, true} {
			desc := *describe(t, "sm_75")
			desc.ApproxMath = approx
			k, err := Render(opt.Expand(p, &desc), &desc, gpu.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(k.Text, want+"(") != approx {
				t.Errorf("%s: %t", want, approx)
			}
		}
	}
}

// Targets that lack an instruction are refused, with the kernel's name.
func TestErrors(t *testing.T) {
	b := program.NewBuilder("products")
	b.SetGrid(1)
	b.SetBlock(32)
	b.GridLoop(func(*program.Value) {
		b.Mma(b.Zero(program.Vector(ir.F32, 4)), b.Zero(program.Vector(ir.BF16, 8)), b.Zero(program.Vector(ir.BF16, 4)))
	})
	p := b.Finish()
	for _, c := range []struct {
		desc *target.Desc
		want string
	}{
		{nil, "no NVIDIA GPU"},
		{target.Interp(), "no NVIDIA GPU"},
		{describe(t, "sm_75"), "sm_75 has no mma"},
	} {
		_, err := Render(p, c.desc, gpu.Options{})
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.want)) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
