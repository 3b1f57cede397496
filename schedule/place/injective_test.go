package place

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	_ "tgc/internal/steadyseed"
	"tgc/ir"
	"tgc/schedule/expr"
)

// indexMaker draws index tuples: sums of digits of ranges.
type indexMaker struct {
	t      *rapid.T
	s      *expr.Exprs
	ranges []*ir.UOp
}

func (m *indexMaker) int(lo, hi int, label string) int64 {
	return int64(rapid.IntRange(lo, hi).Draw(m.t, label))
}

func (m *indexMaker) digit() *ir.UOp {
	a := m.s.A
	x := rapid.SampledFrom(m.ranges).Draw(m.t, "range")
	for range m.int(0, 2, "steps") {
		by := a.Index(m.int(2, 6, "by"))
		if rapid.Bool().Draw(m.t, "div") {
			x = a.Div(x, by)
		} else {
			x = a.Mod(x, by)
		}
	}
	return x
}

func (m *indexMaker) index() []*ir.UOp {
	a := m.s.A
	out := make([]*ir.UOp, m.int(1, 3, "axes"))
	for i := range out {
		out[i] = a.Index(m.int(0, 3, "constant"))
		for range m.int(1, 3, "terms") {
			out[i] = a.Add(out[i], a.Mul(m.digit(), a.Index(rapid.SampledFrom([]int64{1, 1, 2, 3, 4, 6, -1}).Draw(m.t, "weight"))))
		}
		out[i] = m.s.Simplify(out[i])
	}
	return out
}

// points names every point of an index tuple over the ranges.
func (m *indexMaker) points(index []*ir.UOp) []string {
	a := m.s.A
	all := []map[*ir.UOp]*ir.UOp{{}}
	for _, r := range m.ranges {
		n, _ := r.Src[0].Int()
		var next []map[*ir.UOp]*ir.UOp
		for _, at := range all {
			for i := range n {
				with := map[*ir.UOp]*ir.UOp{r: a.Index(i)}
				for k, v := range at {
					with[k] = v
				}
				next = append(next, with)
			}
		}
		all = next
	}
	out := make([]string, len(all))
	for i, with := range all {
		for _, x := range index {
			v, ok := m.s.Simplify(a.Substitute(x, with)).Int()
			if !ok {
				m.t.Fatalf("no number")
			}
			out[i] += fmt.Sprint(v, " ")
		}
	}
	return out
}

// What is proven of index tuples holds at every point.
func TestIndexTuples(t *testing.T) {
	proven := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		m := &indexMaker{t: rt, s: expr.New(ir.NewArena())}
		for i := range m.int(1, 2, "ranges") {
			m.ranges = append(m.ranges, m.s.A.Range(int(i), m.s.A.Index(m.int(2, 12, "extent"))))
		}
		x, y := m.index(), m.index()
		seen := make(map[string]bool)
		once := true
		for _, p := range m.points(x) {
			once = once && !seen[p]
			seen[p] = true
		}
		if injective(m.s, x, m.ranges) {
			proven["injective"]++
			if !once {
				rt.Errorf("%s of %s names a point twice", text(x), text(m.ranges))
			}
		}
		if len(x) != len(y) || !apart(m.s, x, y) {
			return
		}
		proven["apart"]++
		for _, p := range m.points(y) {
			if seen[p] {
				rt.Errorf("%s and %s of %s both name %s", text(x), text(y), text(m.ranges), p)
			}
		}
	})
	t.Log(proven)
	if !testing.Short() && (proven["injective"] < 5 || proven["apart"] < 5) { // -short draws too few
		t.Errorf("little is proven: %v", proven)
	}
}

func text(list []*ir.UOp) (out []string) {
	for _, u := range list {
		out = append(out, expr.KernelText(u))
	}
	return out
}

// A digit of a modulus that is no multiple of its divisor has one value more than the
// quotient: of r%14, r%14/4 is 0 to 3.
func TestDigitsOfOddModulus(t *testing.T) {
	s := expr.New(ir.NewArena())
	a := s.A
	r, j := a.Range(0, a.Index(28)), a.Range(1, a.Index(2))
	for weight, want := range map[int64]bool{3: false, 4: true} {
		digit := a.Div(a.Mod(r, a.Index(14)), a.Index(4))
		index := []*ir.UOp{a.Add(digit, a.Mul(j, a.Index(weight))), a.Mod(r, a.Index(4)), a.Div(r, a.Index(14))}
		if got := injective(s, index, []*ir.UOp{r, j}); got != want {
			t.Errorf("weight %d: injective %v, want %v", weight, got, want)
		}
	}
}
