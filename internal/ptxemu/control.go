package ptxemu

import "fmt"

// Control flow, barriers and what only steers the machine.

var controlInstructions = map[string]func(*compiler, *statement) error{
	"bra":            compileBranch,
	"ret":            compileExit,
	"exit":           compileExit,
	"trap":           compileTrap,
	"bar":            compileBarrier,
	"barrier":        compileBarrier,
	"griddepcontrol": compileGridDependency,
	"membar":         compileNothing,
	"fence":          compileNothing,
	"prefetch":       compileNothing,
	"prefetchu":      compileNothing,
	"applypriority":  compileNothing,
	"discard":        compileNothing,
	"nanosleep":      compileNothing,
	"pmevent":        compileNothing,
}

func compileBranch(c *compiler, s *statement) error {
	if err := s.arity(1, 1); err != nil {
		return err
	}
	target, ok := c.kernel.labels[s.args[0].name]
	if !ok {
		return fmt.Errorf("unknown label %s", s.args[0])
	}
	c.now.kind, c.now.target = branch, target
	return nil
}

func compileExit(c *compiler, _ *statement) error {
	c.now.kind = exit
	return nil
}

func compileTrap(c *compiler, _ *statement) error {
	c.now.run = func(*warp, uint32) error { return fmt.Errorf("trap") }
	return nil
}

func compileNothing(c *compiler, _ *statement) error {
	c.now.run = func(*warp, uint32) error { return nil }
	return nil
}

// compileBarrier: barriers of the whole block, number 0, and of a warp.
func compileBarrier(c *compiler, s *statement) error {
	if s.has("warp") {
		c.now.full = true
		c.now.run = func(w *warp, _ uint32) error {
			w.epoch++
			return nil
		}
		return nil
	}
	if !s.has("sync") || len(s.args) != 1 || !s.args[0].number || s.args[0].bits != 0 {
		return fmt.Errorf("only barrier 0 of all threads is supported")
	}
	c.now.kind = barrier
	return nil
}

func compileGridDependency(c *compiler, s *statement) error {
	switch s.last(0) {
	case "wait":
		c.now.kind = gridWait
	case "launch_dependents":
		c.now.run = func(w *warp, _ uint32) error {
			return w.grid.trigger(w.block)
		}
	default:
		return fmt.Errorf("want wait or launch_dependents")
	}
	return nil
}
