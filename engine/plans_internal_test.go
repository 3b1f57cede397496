package engine

import (
	"maps"
	"testing"

	"tgc/heuristic"
	"tgc/ir"
	"tgc/target"
)

// Kernels of a launch take the number of threads with which they cost least. What a kernel does not accept is cheaper on paper
// only: where it was promised, the next number is tried, and the best one is kept.
func TestThreadsOfALaunch(t *testing.T) {
	for _, c := range []struct {
		name            string
		promised, costs map[int64]float64 // by the number of threads; a kernel takes other threads where it has none
		want            int64
	}{
		{"as promised", map[int64]float64{512: 10, 320: 12}, map[int64]float64{512: 10, 320: 12}, 512},
		{"the next one is cheaper", map[int64]float64{512: 10, 320: 12}, map[int64]float64{512: 20, 320: 12}, 320},
		{"the first was cheaper after all", map[int64]float64{512: 10, 320: 12}, map[int64]float64{512: 20, 320: 25}, 512},
		{"no plan with so many threads", map[int64]float64{512: 10, 320: 12}, map[int64]float64{320: 12}, 320},
	} {
		t.Run(c.name, func(t *testing.T) {
			desc, err := target.Parse("ptx:sm_90a")
			if err != nil {
				t.Fatal(err)
			}
			sink := ir.NewArena().Make(ir.OpSink, ir.Void, nil)
			kernels := []*Kernel{{Name: "a", AST: sink}, {Name: "b", AST: sink}}
			p := &launchPlanner{state: &state{config: &Config{}, out: &Compiled{Target: desc}}, choices: make(map[*Kernel]heuristic.Choice)}
			take := func(threads int64) error {
				for _, k := range kernels {
					price, ok := c.costs[threads]
					if !ok {
						threads = 32
					}
					p.choices[k] = heuristic.Choice{Priced: heuristic.Priced{Prices: maps.Clone(c.promised), BlockThreads: threads, Price: price}}
				}
				return nil
			}
			_ = take(32)
			if err := p.findThreads(kernels, take); err != nil {
				t.Fatal(err)
			}
			for _, k := range kernels {
				if got := p.choices[k].BlockThreads; got != c.want || k.choice.BlockThreads != c.want {
					t.Errorf("%s has %d threads, and takes a plan of %d, want %d", k.Name, got, k.choice.BlockThreads, c.want)
				}
			}
		})
	}
}
