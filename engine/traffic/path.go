package traffic

import (
	"math"

	"tgc/ir/program"
)

// Cycles of a GPU until what an instruction makes can be used (Jia et al., Dissecting the NVIDIA Volta GPU
// architecture via microbenchmarking, 2018; later ones differ little): memory that no cache holds and that the
// second level does, shared memory and shuffles, arithmetic, what threads wait for together.
const (
	coldCycles    = 800
	globalCycles  = 300
	sharedCycles  = 30
	moveCycles    = 24
	aluCycles     = 4
	matrixCycles  = 32
	barrierCycles = 30
	clusterCycles = 400
)

// Path is how many cycles a thread of a GPU's program takes at least, one work unit, from where it has waited for the
// kernel before on: each instruction begins when what it reads is there, and what stands in a loop when all of
// the round before has begun. Loads wait for nothing else, so those in a row pass together.
func Path(p *program.Program, vars map[string]int64) float64 {
	w := &path{walk: newWalk(p, vars, 4), ready: make(map[*program.Value]float64)}
	w.block(p.Body)
	return max(w.now-w.waited, 0)
}

// path goes through a program as a thread does.
type path struct {
	*walk
	ready  map[*program.Value]float64 // when a value can be used; missing: from the beginning
	now    float64                    // when what comes next may begin
	last   float64                    // beginning of what began last
	waited float64                    // end of the wait for the kernel before
	copied float64                    // when the copies that are under way have ended
}

func (w *path) block(b *program.Block) {
	for i := range b.Instrs {
		w.instruction(&b.Instrs[i])
	}
}

// begin is when what reads some values begins.
func (w *path) begin(values []*program.Value) float64 {
	at := w.now
	for _, v := range values {
		at = max(at, w.ready[v])
	}
	w.last = max(w.last, at)
	return at
}

func (w *path) instruction(in *program.Instr) {
	switch in.Op {
	case program.GridLoop:
		w.typical[in.Body.Args[0]] = (w.units - 1) / 2
		w.block(in.Body)
		w.now = max(w.now, w.last)
	case program.For:
		w.rounds(in)
	case program.If:
		w.either(in)
	case program.WaitGrid:
		w.now = max(w.now, w.last)
		w.waited = w.now
		for v, at := range w.ready { // what was asked for before has come
			w.ready[v] = min(at, w.now)
		}
	case program.Barrier, program.SyncWarp, program.ClusterArrive, program.ClusterWait:
		w.now = max(w.now, w.last) + wait(in.Op)
	case program.CopyAsync:
		w.copied = max(w.copied, w.begin(in.Args)+globalCycles)
	case program.WaitCopies:
		w.now = max(w.now, w.last, w.copied)
	default:
		if in.Op == program.Const {
			w.typical[in.Result] = float64(in.Int)
		} else if in.Op == program.Alu {
			w.follow(in)
		}
		at := w.begin(in.Args)
		if in.Result != nil {
			w.ready[in.Result] = at + w.delay(in)
		}
	}
}

func wait(op program.Op) float64 {
	switch op {
	case program.SyncWarp:
		return aluCycles
	case program.ClusterArrive, program.ClusterWait:
		return clusterCycles / 2
	}
	return barrierCycles
}

// delay is until the result of an instruction can be used.
func (w *path) delay(in *program.Instr) float64 {
	switch in.Op {
	case program.Load, program.Guarded, program.Gather:
		return w.memory(in)
	case program.Atomic:
		return globalCycles
	case program.ShuffleLane:
		return moveCycles + w.cost(in)
	case program.Mma, program.GroupMma:
		return matrixCycles
	case program.FoldLanes:
		return aluCycles * math.Log2(float64(max(in.Args[0].Type.Lanes, 2)))
	case program.Const, program.ConstLanes, program.Broadcast, program.PtrAdd, program.Alloca, program.Extract, program.Concat:
		return 0
	}
	return aluCycles + w.cost(in) - 1
}

// memory is how long a load takes.
func (w *path) memory(in *program.Instr) float64 {
	for _, a := range in.Args {
		switch {
		case !a.Type.Ptr:
		case a.Type.Space == program.PeerSpace:
			return clusterCycles / 2
		case a.Type.Space != program.GlobalSpace:
			return sharedCycles + w.cost(in)
		case in.Cache == program.CacheConst || in.Cache == program.CacheStream || in.Cache == program.CacheWide:
			return coldCycles
		}
	}
	return globalCycles
}

// someRounds of a loop are gone through; the others take as long as the last of them.
const someRounds = 3

// rounds goes through a loop.
func (w *path) rounds(in *program.Instr) {
	trips := w.trips(in)
	carried := in.Body.Args[1:]
	for i, v := range carried {
		w.ready[v] = w.ready[in.Args[3+i]]
	}
	each := 0.0
	for range int(min(trips, someRounds)) {
		before := w.now
		w.block(in.Body)
		yield := in.Body.Instrs[len(in.Body.Instrs)-1].Args
		next := make([]float64, len(carried))
		for i, v := range yield {
			next[i] = w.ready[v]
		}
		for i, v := range carried {
			w.ready[v] = next[i]
		}
		w.now = max(w.now+1, w.last)
		each = w.now - before
	}
	more := each * max(trips-someRounds, 0)
	w.now, w.last = w.now+more, w.last+more
	for i, v := range in.Results {
		w.ready[v] = w.ready[carried[i]] + more
	}
}

// either goes through both arms of an IF, as threads of a warp do that differ.
func (w *path) either(in *program.Instr) {
	at := w.begin(in.Args[:1])
	w.now = at + aluCycles
	end := at
	for _, arm := range []*program.Block{in.Body, in.Else} {
		if arm == nil {
			continue
		}
		w.block(arm)
		for i, v := range in.Results {
			end = max(end, w.ready[arm.Instrs[len(arm.Instrs)-1].Args[i]])
			w.ready[v] = max(w.ready[v], end)
		}
	}
}
