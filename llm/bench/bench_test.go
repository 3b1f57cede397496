package bench

import (
	"slices"
	"testing"

	"tgc/engine"
)

func TestPercentile(t *testing.T) {
	for _, c := range []struct {
		values []float64
		p      float64
		want   float64
	}{
		{[]float64{3}, 0.5, 3},
		{[]float64{4, 1}, 0.5, 2.5},
		{[]float64{9, 1, 5}, 0.5, 5},
		{[]float64{1, 2, 3, 4}, 0.99, 4},
		{[]float64{2, 1}, 0.01, 1},
	} {
		if got := percentile(c.values, c.p); got != c.want {
			t.Errorf("percentile(%v, %v) is %v, want %v", c.values, c.p, got, c.want)
		}
	}
}

func TestTokensAreInVocabulary(t *testing.T) {
	list := tokens(1000, 7)
	seen := make(map[int32]bool)
	for _, id := range list {
		if id < 0 || id >= 7 {
			t.Fatalf("token %d of a vocabulary of 7", id)
		}
		seen[id] = true
	}
	if len(seen) != 7 {
		t.Errorf("%d tokens of 7 occur", len(seen))
	}
}

func TestRoleNamesWhatIsRead(t *testing.T) {
	kernel := func(args ...engine.ManifestArg) *engine.ManifestKernel { return &engine.ManifestKernel{Args: args} }
	weight := func(name string) engine.ManifestArg {
		return engine.ManifestArg{Name: name, Role: engine.RoleWeight}
	}
	cache := engine.ManifestArg{Name: "cache.12.k", Role: engine.RoleState}
	for want, k := range map[string]*engine.ManifestKernel{
		"attn_k":          kernel(cache, weight("blk.12.attn_k.weight")),
		"ffn_gate+ffn_up": kernel(weight("blk.0.ffn_gate.weight"), weight("blk.0.ffn_up.weight")),
		"cache.k":         kernel(cache, engine.ManifestArg{Name: "t1", Role: engine.RoleScratch}),
		"output_norm":     kernel(weight("output_norm.weight")),
		"attn_q.bias":     kernel(weight("blk.3.attn_q.bias")),
		"positions":       kernel(engine.ManifestArg{Name: "positions", Role: engine.RoleInput}),
		"scratch":         kernel(),
	} {
		if got := Role(k); got != want {
			t.Errorf("role is %q, want %q", got, want)
		}
	}
}

// Calls of one kernel are summed over the launches, in the order of the step.
func TestTimingsOfCalls(t *testing.T) {
	x, y := &engine.Kernel{Name: "x"}, &engine.Kernel{Name: "y"}
	c := &engine.Compiled{Launches: [][]engine.Call{{{Kernel: x}, {Kernel: y}}, {{Kernel: x}}}}
	got := timingsOf(c, [][]float64{{1, 2, 9}, {4}, {3, 5}})
	if want := 2.0 + 4; got[x].alone != want || got[y].alone != 4 {
		t.Errorf("x takes %v and y %v, want %v and 4", got[x].alone, got[y].alone, want)
	}
	if !slices.Equal(got[x].calls, []int{0, 2}) || !slices.Equal(got[y].calls, []int{1}) {
		t.Errorf("calls %v and %v, want 0, 2 and 1", got[x].calls, got[y].calls)
	}
}
