package packed

import (
	"slices"
	"testing"

	"tgc/ir"
)

// TestFieldIndicesAffine: let the digits of k be cut at every boundary that an
// expression names (c and c*m of (k/c)%m). They form a chain of divisors, and
// every FIELD index is an affine function of the digits: what lets a kernel walk
// a block with constant strides.
func TestFieldIndicesAffine(t *testing.T) {
	for _, f := range All() {
		if f.IsPlain() {
			continue
		}
		a := ir.NewArena()
		row, k := a.Range(0, a.Index(1)), a.Range(1, a.Index(int64(f.BlockElems)))
		root := f.Decode(a, bufferFor(a, f, 1, int64(f.BlockElems)), row, k)
		chain := boundaries(root, k, int64(f.BlockElems))
		for i := 1; i < len(chain); i++ {
			if chain[i]%chain[i-1] != 0 {
				t.Fatalf("%s: boundaries %v are no chain of divisors", f.Name, chain)
			}
		}
		for _, u := range ir.Toposort(root) {
			if u.Op == ir.OpField {
				checkAffine(t, f, u, k, chain)
			}
		}
	}
}

// boundaries lists 1, c and c*m of all digits, and the block, ascending.
func boundaries(root, k *ir.UOp, block int64) []int64 {
	list := []int64{1, block}
	for _, u := range ir.Toposort(root) {
		if u.Op != ir.OpFloorMod || u.DType != ir.Idx {
			continue
		}
		c := int64(1)
		if x := u.Src[0]; x.Op == ir.OpFloorDiv {
			c, _ = x.Src[1].Int()
		}
		m, _ := u.Src[1].Int()
		list = append(list, c, c*m)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// checkAffine compares the index of every element with the one that the steps
// of the single digits predict.
func checkAffine(t *testing.T, f *Format, field, k *ir.UOp, chain []int64) {
	t.Helper()
	e := newEvaluator(f, Placement{}, nil, field.Src[3])
	at := func(v int64) int64 {
		e.vars[k] = v
		if _, err := e.run(); err != nil {
			t.Fatal(err)
		}
		return e.of(field.Src[3]).I
	}
	first := at(0)
	for v := range int64(f.BlockElems) {
		want := first
		for i := range len(chain) - 1 {
			digit := v % chain[i+1] / chain[i]
			want += digit * (at(chain[i]) - first)
		}
		if got := at(v); got != want {
			t.Errorf("%s: index into %s of element %d is %d, an affine one would be %d",
				f.Name, field.Arg.(ir.FieldArg).Field, v, got, want)
			return
		}
	}
}
