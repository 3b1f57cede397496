package traffic

import (
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Sectors of memory that threads of a warp ask for together: what a multiprocessor moves for them, however few of
// the bytes they use. Threads side by side that read side by side share sectors, others have one each.
const (
	warpLanes   = 32
	sectorBytes = 32
	someWarps   = 4 // of a block that are looked at
)

// Sectors estimates the bytes of sectors that all warps of a GPU's program read from buffers: a sector
// counts once in a round of a loop, for each warp. Loops and arms count as they do in Instructions; where an address comes
// from memory, each thread has sectors of its own.
func Sectors(p *program.Program, vars map[string]int64) float64 {
	warps := max((p.Threads()+warpLanes-1)/warpLanes, 1)
	total, looked := 0.0, min(warps, someWarps)
	for i := range looked {
		w := newWarp(p, vars, i*warps/looked*warpLanes)
		total += w.block(p.Body)
	}
	return total * float64(warps) / float64(looked)
}

// lanes are the values of a warp's threads.
type lanes [warpLanes]float64

// warp follows integers and addresses in the threads of one warp.
type warp struct {
	units  float64
	first  int64 // thread
	shape  []int64
	active [warpLanes]bool
	of     map[*program.Value]*lanes // where known
	seen   map[int64]bool            // sectors of this round
}

func newWarp(p *program.Program, vars map[string]int64, first int64) *warp {
	w := &warp{units: float64(p.Units()), first: first, shape: p.Block, of: make(map[*program.Value]*lanes)}
	for i := range w.active {
		w.active[i] = first+int64(i) < p.Threads()
	}
	for i, param := range p.Params {
		switch n, ok := vars[param.Name]; {
		case param.Kind == program.ParamVar && ok:
			w.same(param.Value, float64(n))
		case param.Kind == program.ParamVar:
			w.same(param.Value, float64(param.Hi))
		default: // buffers are far from each other
			w.same(param.Value, float64(i<<bufferBits))
		}
	}
	return w
}

// bufferBits are those of an address in a buffer.
const bufferBits = 40

// same is a value that all threads have.
func (w *warp) same(v *program.Value, x float64) {
	var l lanes
	for i := range l {
		l[i] = x
	}
	w.of[v] = &l
}

// one is a value that all threads have, as far as it is known.
func (w *warp) one(v *program.Value) float64 {
	if l := w.of[v]; l != nil {
		return l[0]
	}
	return 0
}

// block is the bytes of sectors that one round of a block reads.
func (w *warp) block(b *program.Block) (bytes float64) {
	outer := w.seen
	w.seen = make(map[int64]bool)
	for i := range b.Instrs {
		bytes += w.instruction(&b.Instrs[i])
	}
	bytes += sectorBytes * float64(len(w.seen))
	w.seen = outer
	return bytes
}

func (w *warp) instruction(in *program.Instr) float64 {
	switch in.Op {
	case program.GridLoop:
		w.same(in.Body.Args[0], float64(int64(w.units-1)/2))
		return w.units * w.block(in.Body)
	case program.For:
		return w.loop(in)
	case program.If:
		return w.arms(in)
	case program.Const:
		w.same(in.Result, float64(in.Int))
	case program.ThreadIndex:
		w.index(in)
	case program.Alu:
		w.follow(in)
	case program.PtrAdd:
		w.move(in)
	case program.Load, program.Guarded, program.Gather:
		return w.load(in)
	}
	return 0
}

// loop is a FOR, of which a round in the middle is looked at.
func (w *warp) loop(in *program.Instr) float64 {
	lo, hi, step := w.one(in.Args[0]), w.one(in.Args[1]), w.one(in.Args[2])
	rounds := trips(lo, hi, step)
	w.same(in.Body.Args[0], middle(lo, rounds, step))
	for i, v := range in.Body.Args[1:] {
		w.of[v] = w.of[in.Args[3+i]]
	}
	return rounds * w.block(in.Body)
}

// arms is an IF: threads take one of its arms each, or both as often, where that is not known.
func (w *warp) arms(in *program.Instr) (bytes float64) {
	all, taken := w.active, w.of[in.Args[0]]
	for _, arm := range []*program.Block{in.Body, in.Else} {
		if arm == nil {
			continue
		}
		some := false
		for i := range all {
			w.active[i] = all[i] && (taken == nil || (taken[i] != 0) == (arm == in.Body))
			some = some || w.active[i]
		}
		switch {
		case some && taken == nil:
			bytes += w.block(arm) / 2
		case some:
			bytes += w.block(arm)
		}
	}
	w.active = all
	return bytes
}

// index is a thread's along one axis of the block.
func (w *warp) index(in *program.Instr) {
	below := lists.Product(w.shape[in.Lane+1:])
	var l lanes
	for i := range l {
		l[i] = float64((w.first + int64(i)) / below % w.shape[in.Lane])
	}
	w.of[in.Result] = &l
}

// follow finds the value of integer arithmetic on known values.
func (w *warp) follow(in *program.Instr) {
	if in.Result.Type.Lanes != 1 || len(in.Args) == 0 {
		return
	}
	args := make([]*lanes, len(in.Args))
	for k, a := range in.Args {
		if args[k] = w.of[a]; args[k] == nil {
			return
		}
	}
	var l lanes
	x := make([]float64, len(args))
	for i := range l {
		for k := range args {
			x[k] = args[k][i]
		}
		v, ok := evaluateBits(in.Ir, x)
		if !ok {
			return
		}
		l[i] = v
	}
	w.of[in.Result] = &l
}

// move is an address so many elements further.
func (w *warp) move(in *program.Instr) {
	base, by := w.of[in.Args[0]], w.of[in.Args[1]]
	if base == nil || by == nil {
		return
	}
	var l lanes
	for i := range l {
		l[i] = base[i] + by[i]*float64(in.Args[0].Type.Elem.Size())
	}
	w.of[in.Result] = &l
}

// load notes the sectors of a load from a buffer; what is returned are those of addresses that are not known.
func (w *warp) load(in *program.Instr) (bytes float64) {
	i := 0
	for !in.Args[i].Type.Ptr {
		i++
	}
	at, size := w.of[in.Args[i]], int64(in.Result.Type.Bytes())
	if in.Args[i].Type.Space != program.GlobalSpace {
		return 0
	}
	for lane, active := range w.active {
		switch {
		case !active:
		case at == nil || in.Op == program.Gather:
			bytes += float64((size + sectorBytes - 1) / sectorBytes * sectorBytes)
		default:
			for s := int64(at[lane]) / sectorBytes; s <= (int64(at[lane])+size-1)/sectorBytes; s++ {
				w.seen[s] = true
			}
		}
	}
	return bytes
}

// trips is how often a loop runs, at least once where that is not known.
func trips(lo, hi, step float64) float64 {
	if step <= 0 {
		return 1
	}
	n := (hi - lo) / step
	if whole := float64(int64(n)); whole < n {
		n = whole + 1
	}
	return max(n, 0)
}

// middle is the index of a loop in the middle of its rounds.
func middle(lo, rounds, step float64) float64 {
	return lo + float64(int64(max(rounds-1, 0)/2))*step
}

// evaluateBits is an operation of index arithmetic, or one on the bits of whole numbers.
func evaluateBits(op ir.Op, x []float64) (v float64, ok bool) {
	switch op {
	case ir.OpBitcast: // of an address
		return x[0], true
	case ir.OpAnd:
		return float64(int64(x[0]) & int64(x[1])), true
	case ir.OpOr:
		return float64(int64(x[0]) | int64(x[1])), true
	case ir.OpXor:
		return float64(int64(x[0]) ^ int64(x[1])), true
	case ir.OpWhere:
		if x[0] != 0 {
			return x[1], true
		}
		return x[2], true
	}
	return evaluate(op, x)
}
