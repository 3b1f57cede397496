package ir_test

import (
	"testing"

	_ "tgc/internal/steadyseed"
	"tgc/ir"

	"pgregory.net/rapid"
)

// TestNodeMap compares the map and the set with Go maps, over nodes of two
// arenas, whose numbers are the same, and nodes outside any: few nodes, which
// stay in a table, and as many as make it pages.
func TestNodeMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := ir.NewArena(), ir.NewArena()
		count := rapid.SampledFrom([]int{1, 5, 40, 300, 2000}).Draw(t, "nodes")
		var nodes []*ir.UOp
		for i := range count {
			nodes = append(nodes, a.Index(int64(i)), b.Index(int64(i)), ir.New(ir.OpConst, ir.Idx, ir.IntArg(i)))
		}
		want, seen := make(map[*ir.UOp]int), make(map[*ir.UOp]bool)
		var found ir.NodeMap[int]
		var visited ir.Visited
		set := func(u *ir.UOp, value int) {
			found.Set(u, value)
			want[u] = value
			if got := visited.Add(u); got == seen[u] {
				t.Fatalf("Add said %t of a node that was %t", got, seen[u])
			}
			seen[u] = true
		}
		for i := range rapid.IntRange(0, count).Draw(t, "filled") {
			set(nodes[3*i], i)
		}
		for step := range rapid.IntRange(1, 200).Draw(t, "steps") {
			set(rapid.SampledFrom(nodes).Draw(t, "node"), step)
		}
		if visited.Len() != len(seen) || found.Len() != len(want) {
			t.Fatalf("%d nodes visited, %d found, want %d", visited.Len(), found.Len(), len(seen))
		}
		for _, u := range nodes {
			value, ok := want[u]
			if got, has := found.Get(u); got != value || has != ok || found.Has(u) != ok || found.Of(u) != value {
				t.Fatalf("found for %v: %d %t, want %d %t", u.Arg, got, has, value, ok)
			}
		}
	})
}
