package opt_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/runtime/interp"
	"tgc/target"
)

// The programs of a golden file compute the same with two sets of tiles, filled by copies or not.
func TestDoubleBufferComputesTheSame(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/copytiles.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		if name, ok := strings.CutSuffix(f.Name, ".program"); ok {
			t.Run(name, func(t *testing.T) { bufferedTheSame(t, string(f.Data)) })
		}
	}
}

func bufferedTheSame(t *testing.T, text string) {
	p, err := program.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p.Options[program.Panel] = 8
	want := runFilled(t, p)
	for _, sm := range []int{75, 90} {
		desc, err := target.ForGPU(sm, false)
		if err != nil {
			t.Fatal(err)
		}
		after, err := opt.RunPass(context.Background(), "double-buffer", program.Print(p), desc)
		if err != nil {
			t.Fatal(err)
		}
		if sm == 75 && strings.Contains(after, "cop") {
			t.Errorf("copies on sm_75:\n%s", after)
		}
		q, err := program.Parse(after)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, runFilled(t, q)); diff != "" {
			t.Errorf("sm_%d: buffers differ (-before +after):\n%s\n%s", sm, diff, after)
		}
	}
}

// runFilled runs a program on random small numbers and gives its buffers.
func runFilled(t *testing.T, p *program.Program) [][]byte {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	args := make([]interp.Arg, len(p.Params))
	out := make([][]byte, len(p.Params))
	for i := range p.Params {
		elem := p.Params[i].Value.Type.Elem
		for range int(p.Params[i].Bytes) / elem.Size() {
			n := random.IntN(9)
			bits := uint64(n)
			if elem.IsFloat() {
				bits = ir.FloatBits(elem, float64(n-4))
			}
			for b := range elem.Size() {
				out[i] = append(out[i], byte(bits>>(8*b)))
			}
		}
		args[i].Bytes = out[i]
	}
	if err := interp.RunProgram(p, args, 0, p.Units()); err != nil {
		t.Fatalf("%v\n%s", err, program.Print(p))
	}
	return out
}
