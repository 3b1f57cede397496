package ir_test

import (
	"testing"

	_ "tgc/internal/steadyseed"
	"tgc/ir"

	"pgregory.net/rapid"
)

// TestMemos compares both memos and the set with maps, over nodes of two arenas,
// whose numbers are the same, and nodes outside any.
func TestMemos(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := ir.NewArena(), ir.NewArena()
		count := rapid.IntRange(1, 300).Draw(t, "nodes")
		var nodes []*ir.UOp
		for i := range count {
			nodes = append(nodes, a.Index(int64(i)), b.Index(int64(i)), ir.New(ir.OpConst, ir.Idx, ir.IntArg(i)))
		}
		want, seen := make(map[*ir.UOp]int), make(map[*ir.UOp]bool)
		var memo ir.Memo[int]
		var found ir.Found[int]
		var visited ir.Visited
		for step := range rapid.IntRange(1, 500).Draw(t, "steps") {
			u := rapid.SampledFrom(nodes).Draw(t, "node")
			if got := visited.Add(u); got == seen[u] {
				t.Fatalf("Add said %t of a node that was %t", got, seen[u])
			}
			seen[u] = true
			if rapid.Bool().Draw(t, "set") {
				memo.Set(u, step)
				found.Set(u, step)
				want[u] = step
			}
		}
		if visited.Len() != len(seen) {
			t.Fatalf("%d nodes visited, want %d", visited.Len(), len(seen))
		}
		for _, u := range nodes {
			value, ok := want[u]
			if got, has := memo.Get(u); got != value || has != ok || memo.Has(u) != ok {
				t.Fatalf("memo of %v: %d %t, want %d %t", u.Arg, got, has, value, ok)
			}
			if got, has := found.Get(u); got != value || has != ok {
				t.Fatalf("found for %v: %d %t, want %d %t", u.Arg, got, has, value, ok)
			}
		}
	})
}
