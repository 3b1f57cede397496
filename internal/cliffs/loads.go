package main

import (
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// Widths of a thread's loads, in bytes.
const (
	wideLoad   = 4  // the narrowest that is not narrow
	vectorLoad = 16 // the widest

	inTurnBytes = 2 * vectorLoad // a value and its factor: so few wait for memory in every iteration
)

// loads is how a thread of a program loads weights, and what they are multiplied with.
type loads struct {
	wide, narrow float64 // loads of what is most of a weight, with the trips of the loops around them
	flight       int64   // bytes that straight code loads: they can be in flight together
	inTurn       float64 // the most iterations of a loop that loads no more than inTurnBytes of a buffer
}

// loadCounter walks a program. Of integers and addresses it knows what they are for the
// first thread and the first iterations of loops: that tells the fields of a weight,
// which lie in planes, apart.
type loadCounter struct {
	memory  *dep.Memory
	weights map[int]*weight
	ints    map[*program.Value]int64
	offsets map[*program.Value]int64 // bytes, of pointers
	read    int64                    // bytes of buffers that the code walked so far loads, once
	loads
}

// loadsOf counts the loads of a part's weights.
func loadsOf(p *part) loads {
	c := &loadCounter{
		memory: dep.MemoryOf(p.Program), weights: make(map[int]*weight),
		ints: make(map[*program.Value]int64), offsets: make(map[*program.Value]int64),
	}
	for i := range p.weights {
		c.weights[p.weights[i].slot] = &p.weights[i]
	}
	straight := c.block(p.Program.Body, 1)
	c.flight = max(c.flight, straight)
	return c.loads
}

// block counts the loads of a block that runs some times, and returns the bytes of those
// that stand in no loop of it.
func (c *loadCounter) block(b *program.Block, times float64) int64 {
	flight := int64(0)
	for i := range b.Instrs {
		in := &b.Instrs[i]
		switch in.Op {
		case program.For:
			trips := c.trips(in)
			c.ints[in.Body.Args[0]] = c.ints[in.Args[0]]
			for k, first := range in.Args[3:] {
				c.offsets[in.Body.Args[1+k]], c.ints[in.Body.Args[1+k]] = c.offsets[first], c.ints[first]
			}
			before := c.read
			c.flight = max(c.flight, c.block(in.Body, times*trips))
			if n := c.read - before; n > 0 && n <= inTurnBytes {
				c.inTurn = max(c.inTurn, trips)
			}
		case program.Load, program.Gather, program.Guarded:
			width := in.Result.Type.Bytes()
			if in.Op == program.Gather {
				width = in.Result.Type.Elem.Size()
			}
			flight += c.load(in.Args[0], width, in.Result.Type.Bytes(), times)
		case program.CopyAsync:
			flight += c.load(in.Args[1], int(in.Int), int(in.Int), times)
		default:
			c.follow(in)
			for inner := range in.Blocks() {
				flight += c.block(inner, times)
			}
		}
	}
	return flight
}

func (c *loadCounter) load(pointer *program.Value, width, bytes int, times float64) int64 {
	param := c.memory.Param(pointer)
	if param == nil || param.Kind != program.ParamBuffer {
		return 0
	}
	c.read += int64(bytes)
	if c.weights[param.Slot] == nil {
		return 0
	}
	switch bulk := c.weights[param.Slot].bulkAt(c.offsets[pointer]); {
	case bulk && width < wideLoad:
		c.narrow += times * float64(bytes) / float64(width)
	case bulk:
		c.wide += times * float64(bytes) / float64(min(width, vectorLoad))
	}
	return int64(bytes)
}

// trips is how often a loop runs: once where its bounds are not known.
func (c *loadCounter) trips(in *program.Instr) float64 {
	lo, hi, step := c.ints[in.Args[0]], c.ints[in.Args[1]], c.ints[in.Args[2]]
	if step <= 0 || hi <= lo {
		return 1
	}
	return float64((hi - lo + step - 1) / step)
}

// follow notes the value of an integer or an address; what is not known counts as 0.
func (c *loadCounter) follow(in *program.Instr) {
	switch {
	case in.Op == program.Const:
		c.ints[in.Result] = in.Int
	case in.Op == program.PtrAdd:
		c.offsets[in.Result] = c.offsets[in.Args[0]] + c.ints[in.Args[1]]*int64(in.Args[0].Type.Elem.Size())
	case in.Result != nil && in.Result.Type.Ptr && len(in.Args) > 0:
		c.offsets[in.Result] = c.offsets[in.Args[0]]
	case in.Op == program.Alu && in.Result.Type.Lanes == 1 && in.Result.Type.Elem.IsInt():
		args := make([]ir.Scalar, len(in.Args))
		for i, a := range in.Args {
			if !a.Type.Elem.IsInt() && a.Type.Elem != ir.Bool {
				return
			}
			args[i] = ir.IntScalar(c.ints[a])
		}
		if divides(in.Ir) && args[1].I == 0 {
			return
		}
		c.ints[in.Result] = ir.EvalScalar(in.Ir, in.Result.Type.Elem, in.Args[len(in.Args)-1].Type.Elem, args).I
	}
}

func divides(op ir.Op) bool { return op == ir.OpFloorDiv || op == ir.OpFloorMod }
