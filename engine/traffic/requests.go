package traffic

import (
	"math"
	"slices"

	"tgc/ir"
	"tgc/ir/program"
)

// Requests are what the accesses of a GPU's program ask of its memories, all work units together.
type Requests struct {
	Sectors float64 // of 32 bytes, of global memory: each once for the threads of a warp that ask for it together
	Lines   float64 // of 128 bytes
	Banks   float64 // times that shared memory is busy: words of one bank wait for one another
}

// Sizes of what memory moves (CUDA C Programming Guide).
const (
	sectorBytes = 32
	lineBytes   = 128
	bankBytes   = 4
	sharedBanks = 32
	warpLanes   = 32
)

// RequestsOf follows the addresses of the first warp of the middle work unit, which stands for the others.
// Addresses that come from memory are as good as they can be.
func RequestsOf(p *program.Program, vars map[string]int64) (r Requests) {
	w := &requests{walk: newWalk(p, vars, 4), lanes: make(map[*program.Value][]float64), sum: &r}
	for _, param := range p.Params {
		if param.Kind != program.ParamVar {
			w.lanes[param.Value] = []float64{0}
		} else {
			w.lanes[param.Value] = []float64{w.typical[param.Value]}
		}
	}
	w.block(p.Body, math.Ceil(float64(p.Threads())/warpLanes))
	return r
}

// requests goes through a program as a warp does.
type requests struct {
	*walk
	lanes map[*program.Value][]float64 // integers, and places of pointers in their buffers: of each lane, or one of all
	sum   *Requests
}

// block counts the accesses of a block that runs so many times.
func (w *requests) block(b *program.Block, times float64) {
	for i := range b.Instrs {
		w.instruction(&b.Instrs[i], times)
	}
}

func (w *requests) instruction(in *program.Instr, times float64) {
	switch in.Op {
	case program.GridLoop:
		w.lanes[in.Body.Args[0]] = []float64{math.Floor((w.units - 1) / 2)}
		w.block(in.Body, times*w.units)
	case program.For:
		for _, a := range in.Args[:3] {
			if known := w.lanes[a]; len(known) > 0 {
				w.typical[a] = known[0]
			}
		}
		trips := w.trips(in)
		w.lanes[in.Body.Args[0]] = []float64{w.typical[in.Body.Args[0]]}
		for i, v := range in.Body.Args[1:] {
			w.lanes[v] = w.lanes[in.Args[3+i]] // pointers that move on from round to round move together
		}
		w.block(in.Body, times*trips)
	case program.If:
		w.block(in.Body, times)
		if in.Else != nil {
			w.block(in.Else, times)
		}
	case program.ThreadIndex:
		lanes := make([]float64, warpLanes)
		for i := range lanes {
			lanes[i] = float64(i)
		}
		w.lanes[in.Result] = lanes
	case program.Const:
		w.lanes[in.Result] = []float64{float64(in.Int)}
	case program.Alloca:
		w.lanes[in.Result] = []float64{0}
	case program.PtrAdd:
		size := float64(in.Result.Type.Elem.Size())
		w.lanes[in.Result] = combine(w.lanes[in.Args[0]], w.lanes[in.Args[1]], func(x, y float64) (float64, bool) { return x + y*size, true })
	case program.Alu:
		w.arithmetic(in)
	case program.Load, program.Guarded, program.Store:
		w.access(in, times)
	case program.CopyAsync:
		for _, p := range in.Args {
			w.accessBytes(p, int(in.Int), times)
		}
	}
}

// arithmetic follows integers of one lane each.
func (w *requests) arithmetic(in *program.Instr) {
	if in.Result.Type.Lanes != 1 {
		return
	}
	if in.Result.Type.Ptr {
		w.lanes[in.Result] = w.lanes[in.Args[0]]
		return
	}
	switch one := func(x float64) (float64, bool) { return evaluate(in.Ir, []float64{x}) }; len(in.Args) {
	case 1:
		w.lanes[in.Result] = combine(w.lanes[in.Args[0]], []float64{0}, func(x, _ float64) (float64, bool) { return one(x) })
	case 2:
		w.lanes[in.Result] = combine(w.lanes[in.Args[0]], w.lanes[in.Args[1]], func(x, y float64) (float64, bool) {
			switch in.Ir {
			case ir.OpAnd:
				return float64(int64(x) & int64(y)), true
			case ir.OpOr:
				return float64(int64(x) | int64(y)), true
			case ir.OpXor:
				return float64(int64(x) ^ int64(y)), true
			}
			return evaluate(in.Ir, []float64{x, y})
		})
	}
}

// combine computes of two values lane by lane; nil is one that is not known.
func combine(x, y []float64, f func(x, y float64) (float64, bool)) []float64 {
	if len(x) == 0 || len(y) == 0 {
		return nil
	}
	out := make([]float64, max(len(x), len(y)))
	for i := range out {
		v, ok := f(x[i%len(x)], y[i%len(y)])
		if !ok {
			return nil
		}
		out[i] = v
	}
	return out
}

// access counts what a load or store asks for.
func (w *requests) access(in *program.Instr, times float64) {
	i := 0
	if in.Op == program.Guarded {
		i = 1
	}
	bytes := in.Args[len(in.Args)-1].Type.Bytes()
	if in.Result != nil {
		bytes = in.Result.Type.Bytes()
	}
	w.accessBytes(in.Args[i], bytes, times)
}

// accessBytes counts an access of as many bytes in each lane.
func (w *requests) accessBytes(pointer *program.Value, bytes int, times float64) {
	t, at := pointer.Type, w.lanes[pointer]
	switch {
	case t.Space == program.GlobalSpace && len(at) == 0:
		w.sum.Sectors += times * math.Ceil(float64(bytes*warpLanes)/sectorBytes)
		w.sum.Lines += times * math.Ceil(float64(bytes*warpLanes)/lineBytes)
	case t.Space == program.GlobalSpace:
		w.sum.Sectors += times * parts(at, bytes, sectorBytes)
		w.sum.Lines += times * parts(at, bytes, lineBytes)
	case t.Space == program.SharedSpace && len(at) == 0:
		w.sum.Banks += times * math.Ceil(float64(bytes)/bankBytes)
	case t.Space == program.SharedSpace:
		w.sum.Banks += times * busy(at, bytes)
	}
}

// parts is how many parts of memory lanes touch.
func parts(at []float64, bytes int, size int64) float64 {
	touched := make(map[int64]bool, warpLanes)
	for _, x := range at {
		first, last := int64(x)/size, (int64(x)+int64(bytes)-1)/size
		for p := first; p <= last; p++ {
			touched[p] = true
		}
	}
	return float64(len(touched))
}

// busy is how long the bank takes of which most words are wanted.
func busy(at []float64, bytes int) float64 {
	var banks [sharedBanks]float64
	known := make(map[int64]bool, warpLanes)
	for _, x := range at {
		for word := int64(x) / bankBytes; word <= (int64(x)+int64(bytes)-1)/bankBytes; word++ {
			if !known[word] {
				known[word] = true
				banks[((word%sharedBanks)+sharedBanks)%sharedBanks]++
			}
		}
	}
	return slices.Max(banks[:])
}
