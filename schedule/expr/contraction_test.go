package expr_test

import (
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/packed"
	"tgc/schedule/expr"
)

var update = flag.Bool("update", false, "rewrite testdata")

// contractions is the golden of all packed types, a file for each.
const contractions = "testdata/contractions.txtar"

// product is sum_k y*w over a row of two blocks of a packed type, with y two digits of
// rounded activations, and their scale for each 32, beside it.
func product(s *expr.Exprs, f *packed.Format) (sum *ir.UOp, factors []*ir.UOp) {
	a := s.A
	extent := func(n int64) []*ir.UOp { return []*ir.UOp{a.Index(n)} }
	param := func(slot int, d ir.DType, n int64) *ir.UOp {
		return a.Make(ir.OpParam, d, ir.ParamArg{Slot: slot}, extent(n)...)
	}
	n := int64(2 * max(f.BlockElems, 32))
	row, k := a.Range(expr.FirstFree-1, a.Index(4)), a.Range(1, a.Index(n))
	w := a.Make(ir.OpParam, ir.U8, ir.ParamArg{Slot: 0, Format: f.Name}, a.Index(4), a.Index(n))
	digit := func(slot int) *ir.UOp { return a.Cast(a.Load(param(slot, ir.I8, n), k), ir.F32) }
	y := a.Add(a.Mul(digit(1), a.Const(ir.F32, 256)), digit(2))
	scale := a.Load(param(3, ir.F32, n/32), a.Div(k, a.Index(32)))
	factors = append([]*ir.UOp{y, scale}, analyse.Factors(s.Simplify(f.Decode(a, w, row, k)))...)
	return s.CloseReduce(a.Reduce(ir.OpAdd, analyse.Product(a, factors), k)), factors
}

// What is derived of every packed type: its terms, the levels of its scales, and the
// role of what stays innermost; and where it has an offset, the terms that this becomes.
func TestContractionOfEveryType(t *testing.T) {
	archive, err := txtar.ParseFile(contractions)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := make(map[string]string)
	if archive != nil {
		for _, f := range archive.Files {
			want[f.Name] = string(f.Data)
		}
	}
	out := &txtar.Archive{Comment: []byte("Contractions of two digits of activations, their scale for each 32, and a weight of\nevery packed type (TestContractionOfEveryType; -update rewrites this).\n\n")}
	check := func(name, text string) {
		if diff := cmp.Diff(want[name], text); diff != "" && !*update {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		out.Files = append(out.Files, txtar.File{Name: name, Data: []byte(text)})
	}
	for _, f := range packed.All() {
		s := expr.New(ir.NewArena())
		sum, factors := product(s, f)
		c := s.ContractionOf(sum, factors, nil)
		text := c.Text(s)
		check(f.Name, text)
		checkLevels(t, s, f.Name, c)
		if s.SeparateOffsets(c); len(c.Terms) > 1 && c.Text(s) != text {
			check(f.Name+" with separate offsets", c.Text(s))
			checkLevels(t, s, f.Name, c)
		}
	}
	if *update {
		if err := os.WriteFile(contractions, txtar.Format(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// checkLevels wants every factor at the innermost digit that it depends on, and digits
// that have the points of the sum.
func checkLevels(t *testing.T, s *expr.Exprs, name string, c *expr.Contraction) {
	checkPoints(t, name, c)
	for _, term := range c.Terms {
		for i, l := range term.Levels {
			for _, f := range l.Factors {
				inside := slices.ContainsFunc(term.Levels[i+1:], func(in expr.Level) bool { return s.DependsOn(f, in.Range) })
				if !s.DependsOn(f, l.Range) && f.Op != ir.OpConst || inside {
					t.Errorf("%s: %s does not belong to level %d", name, expr.KernelText(f), i)
				}
			}
		}
	}
}

// A weight that a bit chooses is a code with an offset: 2*bit - 1 for 1 and -1. One that no single
// bit of it chooses, or that is no integer, stays.
func TestOfBit(t *testing.T) {
	s := expr.New(ir.NewArena())
	for name, want := range map[string]bool{"Q1_0": true, "Q2_0": false, "IQ1_S": false, "IQ3_S": false} {
		f, _ := packed.Lookup(name)
		_, factors := product(s, f)
		code := false
		for _, w := range factors {
			of, compared := s.OfBit(w, false), s.OfBit(w, true)
			if of != w {
				code = s.RoleOf(of) == expr.OffsetCode && s.Bounds.Of(of.Src[0].Src[0]).Within(0, 2)
				if s.RoleOf(compared) != expr.OffsetCode || compared == of {
					t.Errorf("%s: the condition as a bit is %s", name, expr.KernelText(compared))
				}
			}
			if (compared != w) != (of != w) {
				t.Errorf("%s: a bit of one way only: %s, %s", name, expr.KernelText(of), expr.KernelText(compared))
			}
		}
		if code != want {
			t.Errorf("%s: a code with an offset: %v, want %v", name, code, want)
		}
	}
}

// Integer scales of 16 points multiply the codes that an instruction for 32 sums at once: all points of the
// groups are then one sum of integers, small enough for one term. Those of Q6_K are not, other types have scales of 32 and
// more, or none that are integers.
func TestJoinScales(t *testing.T) {
	const points, most = 32, 1 << 8
	joined := map[string]int64{"IQ1_M": 15, "Q2_K": 45, "Q3_K": 128} // what the products of a code and a scale are at most
	for _, f := range packed.All() {
		s := expr.New(ir.NewArena())
		sum, factors := product(s, f)
		factors = factors[1:] // y's digits; its scale is what is left of activations
		c := s.ContractionOf(sum, factors, nil)
		s.JoinDigits(c, points, points)
		s.JoinScales(c, points, 1)
		limited := c.Text(s)
		s.JoinScales(c, points, most)
		checkPoints(t, f.Name, c)
		want, ok := joined[f.Name]
		if changed := c.Text(s) != limited; changed != ok {
			t.Errorf("%s: scales joined: %t, want %t\n%s", f.Name, changed, ok, limited)
		}
		if !ok {
			continue
		}
		last := c.Terms[0].Innermost()
		if n, _ := last.Range.Src[0].Int(); n != points {
			t.Errorf("%s: %d points, want %d", f.Name, n, points)
		}
		i := slices.IndexFunc(last.Factors, s.ReadsField)
		if b := s.Bounds.Of(last.Factors[i].Src[0]); !b.Within(-want, want) || b.Within(-want/2, want/2) {
			t.Errorf("%s: products within %v, want %d", f.Name, b, want)
		}
	}
}

// A weight of which bits add a step to a code is one integer, eight times the code and one more or less, and has one term
// then. Where that is too large, or nothing is added, it stays.
func TestJoinStep(t *testing.T) {
	const most, eight = 1 << 8, 8 + 1
	for _, f := range packed.All() {
		s := expr.New(ir.NewArena())
		sum, factors := product(s, f)
		want := f.Name == "IQ1_S" || f.Name == "IQ1_M"
		var joined []*ir.UOp
		for _, w := range factors {
			if x := s.JoinStep(w, eight-1); x != w {
				t.Errorf("%s: an integer of up to %d is %s", f.Name, eight-1, expr.KernelText(x))
			}
			joined = append(joined, analyse.Factors(s.JoinStep(w, most))...)
		}
		if changed := !slices.Equal(joined, factors); changed != want {
			t.Errorf("%s: a step joined: %t, want %t", f.Name, changed, want)
		}
		if !want {
			continue
		}
		c := s.ContractionOf(sum, joined, nil)
		checkPoints(t, f.Name, c)
		i := slices.IndexFunc(c.Terms[0].Innermost().Factors, s.ReadsField)
		if code := c.Terms[0].Innermost().Factors[i].Src[0]; len(c.Terms) != 1 || !s.Bounds.Of(code).Within(-eight, eight) || s.Bounds.Of(code).Within(1-eight, eight-1) {
			t.Errorf("%s: %d terms, codes within %v:\n%s", f.Name, len(c.Terms), s.Bounds.Of(code), c.Text(s))
		}
	}
}

// checkPoints wants digits of every term that have the points of the sum.
func checkPoints(t *testing.T, name string, c *expr.Contraction) {
	points, _ := c.Sum.ReduceRange().Src[0].Int()
	for _, term := range c.Terms {
		n := int64(1)
		for _, l := range term.Levels {
			extent, _ := l.Range.Src[0].Int()
			n *= extent
		}
		if n != points {
			t.Errorf("%s: levels of %d points, want %d", name, n, points)
		}
	}
}

// A signed byte of a weight stays one where it has another sign: that of a table or of a grid has, one that a
// file stores may be -128.
func TestUnlessNegated(t *testing.T) {
	s := expr.New(ir.NewArena())
	for name, stays := range map[string]bool{"IQ4_NL": true, "MXFP4": true, "IQ3_S": true, "IQ2_XXS": true, "Q8_0": false} {
		f, _ := packed.Lookup(name)
		_, factors := product(s, f)
		signed := 0
		for _, w := range factors {
			if s.Unsigned(w) == w {
				continue
			}
			signed++
			if of := s.UnlessNegated(w); (of == w) != stays || of != w && s.RoleOf(of) != expr.OffsetCode {
				t.Errorf("%s: %v of a signed byte, stays %v, want %v", name, s.RoleOf(of), of == w, stays)
			}
		}
		if signed != 1 {
			t.Errorf("%s has %d signed bytes, want 1", name, signed)
		}
	}
}
