package search

import (
	"sync"

	"tgc/engine"
	"tgc/kernel/plan"
)

// heavier is how many times the instructions of the fastest candidate so far another one may
// execute and still be assembled. Of 913 candidates of five kernels on two cores (AVX-512, Q4_K)
// 153 had more than three times as many when they were tried; the fastest of them took 1.8 times
// as long as the fastest.
const heavier = 4

// ceilings remember which plans were too large, so that those are not lowered that differ from
// one of them in copies of code only, and have at least twice as many.
type ceilings struct {
	reader *plan.Reader

	mu    sync.Mutex
	large map[string]large // by what a plan says apart from copies
}

type large struct {
	copies int64
	plan   string
}

func newCeilings(kernel *engine.Compiled) *ceilings {
	return &ceilings{reader: plan.NewReader(kernel.Kernels[0].AST, kernel.Target), large: make(map[string]large)}
}

// over names a plan that was too large and is much smaller than another one; empty: there is none.
func (c *ceilings) over(p plan.Plan) string {
	form, err := c.reader.Canonical(p)
	if err != nil {
		return "" // lowering says why
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.large[form.Apart]; ok && form.Copies >= 2*known.copies {
		return known.plan
	}
	return ""
}

// note remembers what became of a plan.
func (c *ceilings) note(p plan.Plan, status Status) {
	if status != TooLarge {
		return
	}
	form, err := c.reader.Canonical(p)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.large[form.Apart]; !ok || form.Copies < known.copies {
		c.large[form.Apart] = large{form.Copies, p.String()}
	}
}
