package program

import (
	"strings"
	"testing"

	"tgc/ir"
)

// dotProgram is y[u] = sum over k of x[u*n+k]^2 in 16 lanes, with a guarded
// last step, so that it holds one of most instructions.
func dotProgram() *Program {
	b := NewBuilder("dot")
	x := b.Buffer(0, ir.F32, "x", 64, 4096)
	y := b.Buffer(1, ir.F32, "y", 64, 64)
	b.Access(x, true, false)
	b.Access(y, false, true)
	n := b.Var("n")
	b.SetGrid(4)
	b.GridLoop(func(unit *Value) {
		base := b.PtrAdd(x, b.Mul(unit, n))
		sums := b.For(b.Index(0), n, b.Index(16), []*Value{b.Zero(Vector(ir.F32, 16))},
			func(k *Value, acc []*Value) []*Value {
				v := b.Load(b.PtrAdd(base, k), 16, 4)
				return []*Value{b.Fma(v, v, acc[0])}
			})
		sum := b.FoldLanes(ir.OpAdd, sums[0])
		picked := b.If(b.Lt(unit, b.Index(2)), func() []*Value { return []*Value{sum} },
			func() []*Value { return []*Value{b.Alu(ir.OpNeg, sum)} })
		b.Store(b.PtrAdd(y, unit), picked[0], 4)
	})
	return b.Finish()
}

func TestBuildVerifyPrintParse(t *testing.T) {
	p := dotProgram()
	if err := Verify(p); err != nil {
		t.Fatal(err)
	}
	text := Print(p)
	q, err := Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if again := Print(q); again != text {
		t.Fatalf("round trip:\n%s\nwant:\n%s", again, text)
	}
	if err := Verify(q); err != nil {
		t.Fatal(err)
	}
	t.Log(text)
}

func FuzzParse(f *testing.F) {
	f.Add(Print(dotProgram()))
	f.Add("program \"x\"\ngridloop %0:i64 {\n}\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		if Verify(p) != nil {
			return
		}
		printed := Print(p)
		q, err := Parse(printed)
		if err != nil {
			t.Fatalf("printed text does not parse: %v\n%s", err, printed)
		}
		if Print(q) != printed {
			t.Fatalf("round trip differs:\n%s", printed)
		}
	})
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "expected \"program\""},
		{"program \"x\"\n%0:f32 = frob\n", "unknown instruction"},
		{"program \"x\"\n%0:f32x0 = const 1\n", "lanes"},
		{"program \"x\"\n%0:f32 = neg %1\n", "not defined"},
		{"program \"x\"\ngridloop %0:i64 {\n", "expected \"}\""},
		{"program \"x\"\n%0:f32 = const 1\n%0:f32 = const 1\n", "defined twice"},
	} {
		_, err := Parse(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}
