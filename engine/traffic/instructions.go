package traffic

import (
	"math"

	"tgc/ir"
	"tgc/ir/program"
)

// Instructions counts what a program executes, all work units and threads together,
// in instructions of vectorBytes: a wider vector counts as several, a scalar as one,
// a division as four. Loops count with the trips that they take: unlike Of, which
// counts what a kernel means, this counts what its plan repeats. A bound that depends
// on an outer loop counts with its value in the middle of that loop, an arm of an IF
// whose condition comes from memory as often as the other.
func Instructions(p *program.Program, vars map[string]int64, vectorBytes int) float64 {
	return count(p, vars, vectorBytes, nil)
}

// Pipe is a class of instructions that wait for the same units of a processor.
type Pipe uint8

// The pipes.
const (
	MemoryPipe  Pipe = iota // loads and stores
	FloatPipe               // arithmetic of floats
	IntegerPipe             // and of integers
	MatrixPipe              // dots and matrix instructions
	MovePipe                // of lanes
	ControlPipe             // loops, barriers
	NumPipes
)

// Pipes is Instructions apart by pipe.
func Pipes(p *program.Program, vars map[string]int64, vectorBytes int) (out [NumPipes]float64) {
	for pipe := range NumPipes {
		out[pipe] = count(p, vars, vectorBytes, &pipe)
	}
	return out
}

// pipeOf is the pipe of an instruction.
func pipeOf(in *program.Instr) Pipe {
	switch in.Op {
	case program.Load, program.Store, program.Gather, program.Scatter, program.Guarded, program.Atomic, program.CopyAsync:
		return MemoryPipe
	case program.Dot4, program.Mma, program.GroupMma, program.TileDot:
		return MatrixPipe
	case program.Shuffle, program.Extract, program.Concat, program.ShuffleLane:
		return MovePipe
	case program.Alu, program.FoldLanes:
		if in.Result.Type.Elem.IsFloat() {
			return FloatPipe
		}
		return IntegerPipe
	}
	return ControlPipe
}

// count counts the instructions of one pipe, or of all.
func count(p *program.Program, vars map[string]int64, vectorBytes int, only *Pipe) float64 {
	w := newWalk(p, vars, vectorBytes)
	w.only = only
	return w.block(p.Body) * float64(p.Threads())
}

// newWalk begins a walk with what is known of a program's variables.
func newWalk(p *program.Program, vars map[string]int64, vectorBytes int) *walk {
	w := &walk{width: max(vectorBytes, 1), typical: make(map[*program.Value]float64)}
	for _, param := range p.Params {
		if param.Kind != program.ParamVar {
			continue
		}
		n, ok := vars[param.Name]
		if !ok {
			n = param.Hi
		}
		w.typical[param.Value] = float64(n)
	}
	w.units = float64(p.Units())
	return w
}

// walk counts the instructions of blocks.
type walk struct {
	width   int
	units   float64
	only    *Pipe                      // count nothing else; nil: all
	typical map[*program.Value]float64 // values of integers and conditions, where known
}

func (w *walk) block(b *program.Block) float64 {
	total := 0.0
	for i := range b.Instrs {
		total += w.instruction(&b.Instrs[i])
	}
	return total
}

func (w *walk) instruction(in *program.Instr) float64 {
	switch in.Op {
	case program.GridLoop:
		w.typical[in.Body.Args[0]] = (w.units - 1) / 2
		return w.units * w.block(in.Body)
	case program.For:
		return w.loop(in)
	case program.If:
		return w.arms(in)
	case program.Const:
		w.typical[in.Result] = float64(in.Int)
		return 0
	case program.Alu:
		w.follow(in)
	}
	if w.only != nil && *w.only != pipeOf(in) {
		return 0
	}
	return w.cost(in)
}

// cost is what an instruction without a body counts as.
func (w *walk) cost(in *program.Instr) float64 {
	switch in.Op {
	case program.Alu:
		return w.registers(in) * float64(instructionsOf(in.Ir))
	case program.Gather, program.Scatter:
		return float64(in.Args[1].Type.Lanes)
	case program.FoldLanes:
		return math.Log2(float64(max(in.Args[0].Type.Lanes, 2))) * max(w.registers(in), 1)
	case program.Store:
		return w.size(in.Args[1].Type)
	case program.CopyAsync: // a load and a store
		return 2 * float64((int(in.Int)+w.width-1)/w.width)
	case program.TileDot: // its tiles are loaded, multiplied and stored
		return float64(in.Tile.Rows) * float64(len(in.Args)) / 2
	case program.ConstLanes, program.Broadcast, program.PtrAdd, program.Alloca, program.Yield, program.Prefetch:
		return 0
	case program.LaunchNext: // once a thread, wherever it stands: when the next kernel starts is no work of this one
		return 0
	}
	return max(w.registers(in), 1)
}

// registers is how many vector registers the result takes.
func (w *walk) registers(in *program.Instr) float64 {
	if in.Result == nil {
		return 1
	}
	return w.size(in.Result.Type)
}

func (w *walk) size(t program.Type) float64 {
	return float64((t.Bytes() + w.width - 1) / w.width)
}

// loop counts a FOR.
func (w *walk) loop(in *program.Instr) float64 {
	trips := w.trips(in)
	own := 1.0
	if w.only != nil && *w.only != ControlPipe {
		own = 0
	}
	return trips * (own + w.block(in.Body))
}

// trips is how often a FOR goes round. Its index is in the middle of them from then on.
func (w *walk) trips(in *program.Instr) float64 {
	lo, hi, step := w.typical[in.Args[0]], w.typical[in.Args[1]], w.typical[in.Args[2]]
	trips := 1.0
	if step > 0 {
		trips = max(math.Ceil((hi-lo)/step), 0)
	}
	w.typical[in.Body.Args[0]] = lo + math.Floor(max(trips-1, 0)/2)*step
	return trips
}

// arms counts an IF.
func (w *walk) arms(in *program.Instr) float64 {
	then, otherwise := w.block(in.Body), 0.0
	if in.Else != nil {
		otherwise = w.block(in.Else)
	}
	switch taken, known := w.typical[in.Args[0]]; {
	case !known:
		return (then + otherwise) / 2
	case taken != 0:
		return then
	}
	return otherwise
}

// follow finds the value of integer arithmetic on known values.
func (w *walk) follow(in *program.Instr) {
	if in.Result.Type.Lanes != 1 || len(in.Args) == 0 {
		return
	}
	args := make([]float64, len(in.Args))
	for i, a := range in.Args {
		v, known := w.typical[a]
		if !known {
			return
		}
		args[i] = v
	}
	if v, ok := evaluate(in.Ir, args); ok {
		w.typical[in.Result] = v
	}
}

// evaluate is an operation of index arithmetic.
func evaluate(op ir.Op, x []float64) (v float64, ok bool) {
	truth := func(b bool) (float64, bool) {
		if b {
			return 1, true
		}
		return 0, true
	}
	switch op {
	case ir.OpAdd:
		return x[0] + x[1], true
	case ir.OpSub:
		return x[0] - x[1], true
	case ir.OpMul:
		return x[0] * x[1], true
	case ir.OpMin:
		return min(x[0], x[1]), true
	case ir.OpMax:
		return max(x[0], x[1]), true
	case ir.OpShl:
		return x[0] * math.Exp2(x[1]), true
	case ir.OpShr:
		return math.Floor(x[0] / math.Exp2(x[1])), true
	case ir.OpFloorDiv:
		return math.Floor(x[0] / x[1]), x[1] != 0
	case ir.OpFloorMod:
		return x[0] - x[1]*math.Floor(x[0]/x[1]), x[1] != 0
	case ir.OpCmpLt:
		return truth(x[0] < x[1])
	case ir.OpCmpEq:
		return truth(x[0] == x[1])
	case ir.OpCast:
		return x[0], true
	}
	return 0, false
}

// instructionsOf is how many instructions an operation takes as long as.
func instructionsOf(op ir.Op) int {
	switch op {
	case ir.OpExp2, ir.OpLog2, ir.OpSin:
		return 8
	case ir.OpSqrt, ir.OpRsqrt, ir.OpFDiv, ir.OpRecip, ir.OpFloorDiv, ir.OpFloorMod:
		return 4
	case ir.OpBitcast:
		return 0
	}
	return 1
}
