package ptxemu

import (
	"errors"
	"fmt"
	"math/bits"
)

// warp is 32 lanes of a block. Registers carry a shadow: which lanes hold a
// defined value.
type warp struct {
	grid    *Grid
	block   *block
	index   int    // in its block
	exists  uint32 // lanes that have a thread
	live    uint32 // lanes that have not exited
	data    []vector
	defined []uint32
	preds   []uint32
	decided []uint32 // predicates: lanes with a defined value
	caches  []*allocation
	stack   []path
	epoch   uint32 // counts bar.warp.sync
	waiting bool   // at the block's barrier
	meeting int    // there: how many warps it waits for; 0: all
	held    bool   // at griddepcontrol.wait

	arrivals, waits uint32 // at the barrier of the cluster
	gathering       bool   // waits there

	running  map[int]*groupResult // by slot: what products of warpgroups have not given yet
	products int                  // that it came to
	ordered  bool                 // since the last wait for products: wgmma.fence
	copies   []copying            // that cp.async has started
	hidden   bool                 // stores to shared memory that fence.proxy.async has not shown
	unshown  bool                 // the same at the last barrier

	waited  uint32 // lanes that are past griddepcontrol.wait
	local   []localMemory
	holes   []hole         // of the step that runs
	origins map[int]origin // by slot: the load that left it undefined
}

// origin is the load that left a register undefined, and why.
type origin struct {
	load *step
	why  error
}

// path is a set of lanes that execute together until they come to meet.
type path struct {
	pc, meet int
	lanes    uint32
}

func newWarp(g *Grid) *warp {
	c := g.kernel.program
	w := &warp{
		grid:    g,
		data:    make([]vector, c.data),
		defined: make([]uint32, c.data),
		preds:   make([]uint32, c.preds),
		decided: make([]uint32, c.preds),
		caches:  make([]*allocation, c.caches),
	}
	for _, l := range c.literals {
		for i := range w.data[l.slot] {
			w.data[l.slot][i] = l.bits
		}
		w.defined[l.slot] = ^uint32(0)
	}
	return w
}

// start prepares a warp (perhaps used before) for a block.
func (w *warp) start(b *block, index int) {
	c := w.grid.kernel.program
	threads := w.grid.threads
	w.block, w.index = b, index
	count := min(threads-index*lanes, lanes)
	w.exists = uint32(mask(count))
	w.live = w.exists
	clear(w.decided)
	clear(w.defined)
	for _, l := range c.literals {
		w.defined[l.slot] = ^uint32(0)
	}
	for _, s := range c.specials {
		for lane := range count {
			w.data[s.slot][lane] = w.special(s.name, lane)
		}
		w.defined[s.slot] = ^uint32(0)
	}
	w.stack = append(w.stack[:0], path{0, len(c.steps), w.exists})
	w.epoch, w.waiting, w.held, w.waited = 0, false, false, 0
	w.arrivals, w.waits, w.gathering = 0, 0, false
	w.products = 0
	w.running, w.ordered, w.hidden, w.unshown = nil, false, false, false
	w.copies = w.copies[:0]
	w.local = nil
	w.origins = nil
}

func (w *warp) special(name string, lane int) uint64 {
	g, t := w.grid, w.thread(lane)
	shape := g.launch.Block
	axis := func(values [3]int) uint64 { return uint64(values[name[len(name)-1]-'x']) }
	switch name {
	case "%tid.x", "%tid.y", "%tid.z":
		return axis([3]int{t % shape[0], t / shape[0] % shape[1], t / shape[0] / shape[1]})
	case "%ntid.x", "%ntid.y", "%ntid.z":
		return axis(shape)
	case "%ctaid.x", "%ctaid.y", "%ctaid.z":
		return axis(w.block.index)
	case "%nctaid.x", "%nctaid.y", "%nctaid.z":
		return axis(g.launch.Grid)
	case "%laneid":
		return uint64(lane)
	case "%warpid":
		return uint64(w.index)
	case "%nwarpid":
		return uint64((g.threads + lanes - 1) / lanes)
	case "%lanemask_eq":
		return 1 << lane
	case "%lanemask_lt":
		return 1<<lane - 1
	case "%lanemask_le":
		return 2<<lane - 1
	case "%lanemask_gt":
		return mask(32) &^ (2<<lane - 1)
	case "%lanemask_ge":
		return mask(32) &^ (1<<lane - 1)
	case "%dynamic_smem_size":
		return uint64(g.launch.Shared)
	case "%nsmid":
		return 1
	}
	return 0
}

// thread is the flat index in the block of a lane.
func (w *warp) thread(lane int) int { return w.index*lanes + lane }

// id numbers the warps of a cluster; its threads are lanes times as many.
func (w *warp) id() int { return w.block.rank*maxThreads/lanes + w.index }

func (w *warp) done() bool { return w.live == 0 }

// fault is an error at a step.
func (w *warp) fault(s *step, lanes uint32, err error) error {
	var known *Fault
	if errors.As(err, &known) { // of a grid that this one let start
		return err
	}
	lane := min(bits.TrailingZeros32(lanes), 31)
	var of laneError
	if errors.As(err, &of) {
		lane, err = of.lane, of.error
	}
	return &Fault{Kernel: w.grid.kernel.Name, Block: w.block.index, Thread: w.thread(lane), Line: s.line, Text: s.text, Err: err}
}

// run executes up to budget steps; it stops before at a barrier, at the wait
// for the previous grid, and at the end.
func (w *warp) run(budget int) error {
	steps := w.grid.kernel.program.steps
	for ; budget > 0 && w.live != 0; budget-- {
		top := &w.stack[len(w.stack)-1]
		active := top.lanes & w.live
		if active == 0 || top.pc == top.meet && len(w.stack) > 1 {
			if len(w.stack) == 1 {
				return nil
			}
			w.stack = w.stack[:len(w.stack)-1]
			continue
		}
		if top.pc >= len(steps) { // the end of the text is an exit
			w.live &^= active
			continue
		}
		s := &steps[top.pc]
		taken := active
		if s.guard >= 0 {
			if missing := active &^ w.decided[s.guard]; missing != 0 {
				return w.fault(s, missing, fmt.Errorf("the guard is not defined"))
			}
			if s.negate {
				taken &^= w.preds[s.guard]
			} else {
				taken &= w.preds[s.guard]
			}
		}
		switch s.kind {
		case plain:
			if taken != 0 {
				if err := w.execute(s, taken); err != nil {
					return err
				}
			}
			top.pc++
		case branch:
			w.part(s, top, active, taken)
		case exit:
			if len(w.running) > 0 {
				return w.fault(s, taken, errRunning)
			}
			if lane := w.copyingLane(taken); lane >= 0 {
				return w.fault(s, 1<<lane, errCopying)
			}
			w.live &^= taken
			top.pc++
		case barrier:
			if taken == 0 {
				top.pc++
				continue
			}
			if taken != w.live {
				return w.fault(s, taken, fmt.Errorf("only threads %08x of the warp's %08x reach the barrier", taken, w.live))
			}
			if len(w.running) > 0 {
				return w.fault(s, taken, errRunning)
			}
			top.pc++
			w.waiting, w.meeting, w.unshown = true, s.warps, w.hidden
			return nil
		case clusterWait:
			switch {
			case taken == 0:
				top.pc++
				continue
			case taken != w.live:
				return w.fault(s, taken, fmt.Errorf("only threads %08x of the warp's %08x reach the barrier", taken, w.live))
			}
			if w.waits++; w.waits != w.arrivals {
				return w.fault(s, taken, fmt.Errorf("waits for the cluster and has not arrived"))
			}
			top.pc++
			w.gathering = true
			return nil
		case gridWait:
			top.pc++
			if taken != 0 && w.grid.early {
				w.held = true
				top.pc-- // it stands here until the grid goes on
				return nil
			}
			w.waited |= taken
			w.grid.waited = w.grid.waited || taken != 0
		}
	}
	return nil
}

// ahead reports that a lane may run while earlier grids do.
func (w *warp) ahead(lane int) bool { return w.grid.floor != 0 && w.waited>>lane&1 == 0 }

// execute runs a closure between the checks of its registers.
func (w *warp) execute(s *step, active uint32) error {
	for _, slot := range s.reads {
		if missing := active &^ w.defined[slot]; missing != 0 {
			return w.fault(s, missing, w.undefined(slot))
		}
	}
	for _, slot := range s.tests {
		if missing := active &^ w.decided[slot]; missing != 0 {
			return w.fault(s, missing, fmt.Errorf("reads a predicate that is not defined"))
		}
	}
	if s.full && active != w.live {
		return w.fault(s, active, fmt.Errorf("only threads %08x of the warp's %08x take part", active, w.live))
	}
	if err := s.run(w, active); err != nil {
		return w.fault(s, active, err)
	}
	for _, slot := range s.writes {
		w.defined[slot] |= active
	}
	for _, slot := range s.sets {
		w.decided[slot] |= active
	}
	if len(w.holes) > 0 {
		w.dig(s)
	}
	return nil
}

// dig takes what a load did not find out of the defined registers.
func (w *warp) dig(s *step) {
	if w.origins == nil {
		w.origins = make(map[int]origin)
	}
	for _, h := range w.holes {
		w.defined[h.slot] &^= 1 << h.lane
		w.origins[h.slot] = origin{s, h.why}
	}
	w.holes = w.holes[:0]
}

// undefined describes the use of a register that is not defined.
func (w *warp) undefined(slot int) error {
	if o, ok := w.origins[slot]; ok {
		return fmt.Errorf("reads a register that is not defined, from line %d: `%s`: %w", o.load.line, o.load.text, o.why)
	}
	return fmt.Errorf("reads a register that is not defined")
}

// part sends the lanes of a path to both sides of a branch; which goes first is
// random. The path itself waits where they meet.
func (w *warp) part(s *step, top *path, active, taken uint32) {
	switch taken {
	case active:
		top.pc = s.target
		return
	case 0:
		top.pc++
		return
	}
	fall := path{top.pc + 1, s.meet, active &^ taken}
	jump := path{s.target, s.meet, taken}
	top.pc = s.meet
	if w.grid.random.Uint32()&1 == 0 {
		fall, jump = jump, fall
	}
	w.stack = append(w.stack, fall, jump)
}
