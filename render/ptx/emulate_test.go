package ptx

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"tgc/internal/programtest"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/render/gpu/gputest"
	"tgc/runtime/interp"
)

// emulate renders a program and runs it on the PTX interpreter. buffers are by
// slot; those that the program writes are changed.
func emulate(t testing.TB, p *program.Program, arch string, options Options, buffers map[int][]byte, vars map[string]int64, seed uint64) {
	t.Helper()
	desc := describe(t, arch)
	k, err := Render(opt.Expand(p, desc), desc, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(p, k, buffers, vars, seed); err != nil {
		t.Fatalf("%v\n%s", err, k.Text)
	}
}

// run runs a rendered kernel on the PTX interpreter.
func run(p *program.Program, k *Kernel, buffers map[int][]byte, vars map[string]int64, seed uint64) error {
	return gputest.Run(p, k, k.Text, buffers, vars, seed)
}

// Every elementwise op on every dtype gives what ir.EvalScalar gives.
func TestElementwiseAgainstEvalScalar(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i, c := range programtest.Cases() {
		arch := architectures[i%3]
		err := c.Check(r, 4, func(list [][]byte) error {
			desc := describe(t, arch)
			k, err := Render(opt.Expand(c.Program, desc), desc, Options{})
			if err != nil {
				return err
			}
			buffers := make(map[int][]byte)
			for slot, b := range list {
				buffers[slot] = b
			}
			return run(c.Program, k, buffers, nil, 1)
		})
		if err != nil {
			t.Errorf("%s: %v", arch, err)
		}
	}
}

// Random programs give the interpreter's bits.
func TestRandomProgramsAgainstInterpreter(t *testing.T) {
	for seed := range uint64(60) {
		p, stores := programtest.Generate(seed, 40)
		compare(t, p, stores, seed)
	}
}

func compare(t *testing.T, p *program.Program, stores []programtest.Stored, seed uint64) {
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
	arch := architectures[seed%3]
	emulate(t, p, arch, Options{Persistent: seed%2 == 1}, got, map[string]int64{"n": n}, seed)
	for _, s := range stores {
		size := int64(s.Value.Type.Lanes * s.Value.Type.Elem.Size())
		for unit := range int64(2) {
			at := s.Offset + unit*programtest.OutputBytes/2
			x, y := want[programtest.OutputSlot][at:at+size], got[programtest.OutputSlot][at:at+size]
			if lane, same := programtest.SameLanes(s.Value.Type.Elem, x, y); !same {
				t.Fatalf("seed %d, %s, unit %d: %s lane %d: got %x, want %x\n%s", seed, arch, unit, s.Value, lane, y, x, program.Print(p))
			}
		}
	}
}

// Look-ups of bytes and choices of bytes by bits are rendered in words: golden programs
// of them give the interpreter's bits.
func TestGoldenBytesAgainstInterpreter(t *testing.T) {
	for _, name := range []string{"codebook", "codebook_halves", "codebook_dots", "sign_dots", "odd_signs", "joined_bytes", "bit_choices", "narrow", "halves", "byte_halves", "sign_parts", "byte_products"} {
		archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := program.Parse(section(archive, "in.program"))
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(3, 4))
		want, inputs := make(map[int][]byte), make(map[int][]byte)
		args := make([]interp.Arg, len(p.Params))
		for i, q := range p.Params {
			if q.Kind != program.ParamBuffer {
				continue
			}
			b := make([]byte, q.Bytes)
			for k := range b {
				b[k] = byte(r.Uint32())
			}
			want[q.Slot], inputs[q.Slot] = b, bytes.Clone(b)
			args[i] = interp.Arg{Bytes: b}
		}
		if err := interp.RunProgram(p, args, 0, p.Units()); err != nil {
			t.Fatal(err)
		}
		for _, arch := range architectures {
			got := make(map[int][]byte)
			for slot, b := range inputs {
				got[slot] = bytes.Clone(b)
			}
			emulate(t, p, arch, Options{}, got, nil, 1)
			for slot := range want {
				if !bytes.Equal(got[slot], want[slot]) {
					t.Errorf("%s, %s: buffer %d: got %x, want %x", name, arch, slot, got[slot], want[slot])
				}
			}
		}
	}
}
