package ir

import (
	"testing"

	"pgregory.net/rapid"
)

// renamed copies a kernel with other range ids and slots.
func renamed(a *Arena, root *UOp, ids, slots []int) *UOp {
	done := make(map[*UOp]*UOp)
	for _, u := range Toposort(root) {
		src := make([]*UOp, len(u.Src))
		for i, s := range u.Src {
			src[i] = done[s]
		}
		arg := u.Arg
		switch old := arg.(type) {
		case RangeArg:
			arg = RangeArg{ids[old.ID]}
		case ParamArg:
			arg = ParamArg{slots[old.Slot], old.Format, old.Constant}
		}
		done[u] = a.Make(u.Op, u.DType, arg, src...)
		if u.DType == Idx && u.Op == OpAdd {
			done[u] = Linear(a, done[u]).Build(a) // order follows ids
		}
	}
	return done[root]
}

// gemm is out[i,j] = sum_k x[i,k] * y[k,j] over flat buffers of n*n.
func gemm(a *Arena, n int64) *UOp {
	extent := a.Index(n)
	i, j, k := a.Range(0, extent), a.Range(1, extent), a.Range(2, extent)
	buffer := func(slot int) *UOp { return a.Make(OpParam, F32, ParamArg{Slot: slot}, a.Index(n*n)) }
	at := func(x, y *UOp) *UOp { return Linear(a, a.Add(a.Mul(x, extent), y)).Build(a) }
	product := a.Mul(a.Load(buffer(0), at(i, k)), a.Load(buffer(1), at(k, j)))
	return a.Make(OpSink, Void, nil, a.Store(buffer(2), a.Reduce(OpAdd, product, k), []*UOp{at(i, j)}, []*UOp{i, j}))
}

func TestCanonicalise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := NewArena()
		kernel := []*UOp{gemm(a, 8), sampleKernel(a)}[rapid.IntRange(0, 1).Draw(t, "kernel")]
		ids := rapid.Permutation([]int{0, 1, 2, 7, 9}).Draw(t, "ids")
		slots := rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "slots")
		other := renamed(a, kernel, ids, slots)
		if CanonicalHash(kernel) != CanonicalHash(other) {
			t.Fatal("hashes differ")
		}
		first, oldFirst := Canonicalise(a, kernel)
		second, oldSecond := Canonicalise(a, other)
		if first != second {
			t.Fatalf("differ:\n%s\n%s", Text(first), Text(second))
		}
		for slot, old := range oldFirst {
			if slots[old] != oldSecond[slot] {
				t.Fatalf("slot %d was %d and %d, by renaming %v", slot, old, oldSecond[slot], slots)
			}
		}
		if again, _ := Canonicalise(a, first); again != first {
			t.Fatal("not idempotent")
		}
	})
}

func TestCanonicalHashTellsApart(t *testing.T) {
	a := NewArena()
	transposed := func(k *UOp) *UOp { // swap the two loops of the store
		store := k.Src[0]
		src := append([]*UOp(nil), store.Src...)
		n := len(src)
		src[n-1], src[n-2] = src[n-2], src[n-1]
		return a.Make(OpSink, Void, nil, a.Make(OpStore, Void, store.Arg, src...))
	}
	seen := make(map[uint64]string)
	for name, k := range map[string]*UOp{"gemm 8": gemm(a, 8), "gemm 9": gemm(a, 9), "loops swapped": transposed(gemm(a, 8)), "sample": sampleKernel(a)} {
		h := CanonicalHash(k)
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s hash alike", name, other)
		}
		seen[h] = name
	}
}
