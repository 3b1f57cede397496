package ptxemu

import "fmt"

// Control flow, barriers and what only steers the machine.

var controlInstructions = map[string]func(*compiler, *statement){
	"bra":            compileBranch,
	"ret":            compileExit,
	"exit":           compileExit,
	"trap":           compileTrap,
	"bar":            compileBarrier,
	"barrier":        compileBarrier,
	"griddepcontrol": compileGridDependency,
	"membar":         compileNothing,
	"fence":          compileFence,
	"prefetch":       compileNothing,
	"prefetchu":      compileNothing,
	"applypriority":  compileNothing,
	"discard":        compileNothing,
	"nanosleep":      compileNothing,
	"pmevent":        compileNothing,
}

func compileBranch(c *compiler, s *statement) {
	c.arity(s, 1, 1)
	target, ok := c.kernel.labels[s.args[0].name]
	if !ok {
		c.fail("unknown label %s", s.args[0])
	}
	c.now.kind, c.now.target = branch, target
}

func compileExit(c *compiler, _ *statement) {
	c.now.kind = exit
}

func compileTrap(c *compiler, _ *statement) {
	c.now.run = func(*warp, uint32) error { return fmt.Errorf("trap") }
}

func compileNothing(c *compiler, _ *statement) {
	c.now.run = func(*warp, uint32) error { return nil }
}

// compileFence: only what makes stores visible to products of warpgroups is checked.
func compileFence(c *compiler, s *statement) {
	compileNothing(c, s)
	if s.has("proxy") && s.has("async") {
		c.now.run = func(w *warp, _ uint32) error {
			w.hidden = false
			return nil
		}
	}
}

// compileBarrier: barriers of the whole block, number 0, or of as many threads of it, and of a warp.
func compileBarrier(c *compiler, s *statement) {
	if s.has("cluster") {
		compileClusterBarrier(c, s)
		return
	}
	if s.has("warp") {
		c.now.full = true
		c.now.run = func(w *warp, _ uint32) error {
			w.epoch++
			return nil
		}
		return
	}
	if !s.has("sync") || len(s.args) == 0 || len(s.args) > 2 || !s.args[0].number || s.args[0].bits != 0 {
		c.fail("only barrier 0 is supported, of all threads or of a number")
		return
	}
	if len(s.args) == 2 {
		n := &s.args[1]
		if !n.number || n.bits == 0 || n.bits%32 != 0 {
			c.fail("a barrier of %s threads, want whole warps", n)
			return
		}
		c.now.warps = int(n.bits / 32)
	}
	c.now.kind = barrier
}

func compileGridDependency(c *compiler, s *statement) {
	switch s.last(0) {
	case "wait":
		c.now.kind = gridWait
	case "launch_dependents":
		c.now.run = func(w *warp, _ uint32) error {
			return w.grid.trigger(w.block)
		}
	default:
		c.fail("want wait or launch_dependents")
	}
}
