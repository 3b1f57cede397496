package analyse_test

import (
	"slices"
	"testing"

	"tgc/ir"
	"tgc/ir/analyse"
)

// A tuple whose component 1 reads component 2 and not the first: its projection
// depends on the ranges of components 1 and 2. Component 0 alone is no key.
func TestProjectionFollowsTheCombineStep(t *testing.T) {
	a := ir.NewArena()
	k := a.Range(0, a.Index(8))
	var own []*ir.UOp
	var values []*ir.UOp
	for c := range 3 {
		own = append(own, a.Range(10+c, a.Index(4)))
		x := a.Make(ir.OpParam, ir.F32, ir.ParamArg{Slot: c}, a.Index(8), a.Index(4))
		values = append(values, a.Load(x, k, own[c]))
	}
	arg := func(i int) *ir.UOp { return a.Make(ir.OpArg, ir.F32, ir.IntArg(i)) }
	zero := a.Const(ir.F32, 0)
	tuple := a.TupleReduce(values, k, []*ir.UOp{zero, zero, zero}, []*ir.UOp{
		a.Add(arg(0), arg(3)),
		a.Add(a.Mul(arg(1), arg(2)), arg(4)),
		a.Binary(ir.OpMax, arg(2), arg(5)),
	})
	want := [][]*ir.UOp{{own[0]}, {own[1], own[2]}, {own[2]}}

	lists, mentions := ir.NewFreeRanges(), ir.NewMentionedRanges()
	sets, err := analyse.NewFreeSets(append(slices.Clone(own), k))
	if err != nil {
		t.Fatal(err)
	}
	for c := range 3 {
		p := a.Proj(tuple, c)
		if got := lists.Of(p); !slices.Equal(got, want[c]) {
			t.Errorf("component %d depends on %v, want %v", c, got, want[c])
		}
		if got := mentions.Of(p); !slices.Equal(got, own) {
			t.Errorf("component %d mentions %v, want %v", c, got, own)
		}
		var set analyse.RangeSet
		for _, r := range want[c] {
			set.Add(slices.Index(own, r))
		}
		if got := sets.Of(p); got != set {
			t.Errorf("component %d depends on %v, want %v", c, got.List(), set.List())
		}
	}
	if got := lists.Of(tuple); !slices.Equal(got, own) {
		t.Errorf("the tuple depends on %v, want %v", got, own)
	}
}

// What a REDUCE or STAGE closes is free neither in it nor through the extents of
// what it closes.
func TestClosedRanges(t *testing.T) {
	a := ir.NewArena()
	outer := a.Range(20, a.Index(8))
	row := a.Range(0, a.Index(4))
	column := a.Range(1, a.Add(a.Add(row, outer), a.Index(1)))
	x := a.Make(ir.OpParam, ir.F32, ir.ParamArg{}, a.Index(4), a.Index(16))
	stage := a.Make(ir.OpStage, ir.F32, ir.StageArg{}, a.Load(x, row, column), row, column)
	sum := a.Reduce(ir.OpAdd, a.Load(x, row, column), column)
	lists := ir.NewFreeRanges()
	if got := lists.Of(stage); !slices.Equal(got, []*ir.UOp{outer}) {
		t.Errorf("the stage depends on %v, want the range of an extent", got)
	}
	if got := lists.Of(sum); !slices.Equal(got, []*ir.UOp{row, outer}) {
		t.Errorf("the sum depends on %v, want the row and the range of an extent", got)
	}
}

func TestTooManyRanges(t *testing.T) {
	a := ir.NewArena()
	var ranges []*ir.UOp
	for i := range analyse.MaxRanges + 1 {
		ranges = append(ranges, a.Range(i, a.Index(2)))
	}
	if _, err := analyse.NewFreeSets(ranges); err == nil {
		t.Error("no error")
	}
}

func TestFactors(t *testing.T) {
	a := ir.NewArena()
	var x []*ir.UOp
	for i := range 4 {
		x = append(x, a.Load(a.Make(ir.OpParam, ir.F32, ir.ParamArg{Slot: i})))
	}
	u := a.Mul(a.Mul(x[0], x[1]), a.Mul(x[2], x[3]))
	if got := analyse.Factors(u); !slices.Equal(got, x) {
		t.Errorf("got %v", got)
	}
	if got := analyse.Product(a, x); got != a.Mul(a.Mul(a.Mul(x[0], x[1]), x[2]), x[3]) {
		t.Errorf("got %v", got)
	}
	if !analyse.Uses(u, x[3]) || !analyse.Uses(u, u) || analyse.Uses(x[0], x[1]) {
		t.Error("Uses")
	}
}

// A factor is common as often as both products have it, and nothing else is lost.
func TestCommonFactors(t *testing.T) {
	a := ir.NewArena()
	var f [4]*ir.UOp
	for i := range f {
		f[i] = a.Make(ir.OpParam, ir.F32, ir.ParamArg{Slot: i})
	}
	product := func(list ...*ir.UOp) *ir.UOp { return analyse.Product(a, list) }
	both, left, right := analyse.CommonFactors(product(f[0], f[1], f[0], f[2]), product(f[3], f[0], f[1]))
	if !slices.Equal(both, []*ir.UOp{f[0], f[1]}) || !slices.Equal(left, []*ir.UOp{f[0], f[2]}) || !slices.Equal(right, []*ir.UOp{f[3]}) {
		t.Errorf("%d in common, %d and %d besides", len(both), len(left), len(right))
	}
}
