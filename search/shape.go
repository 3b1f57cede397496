package search

import (
	"tgc/ir/program"
	"tgc/target"
)

// shape is what a thread of a program holds, found by reading it once from its beginning to its end.
// Loops count once: it is about how much is there at a time, not about how often.
type shape struct {
	flight   float64 // bytes of global memory that a thread asks for in a row, with nothing between that waits
	loads    float64 // of them
	live     float64 // registers of 4 bytes that are held at the fullest place
	barriers float64
	wide     float64 // bytes of a load of global memory, on average
	fixed    float64 // instructions, as they stand there
}

// shapeOf reads a program.
func shapeOf(p *program.Program) (s shape) {
	w := &shapeWalk{last: make(map[*program.Value]int), made: make(map[*program.Value]int), ending: make(map[int]float64), shape: &s}
	w.ends(p.Body)
	w.at = 0
	w.block(p.Body)
	w.settle()
	if w.requests > 0 {
		s.wide = w.bytes / w.requests
	}
	return s
}

// shapeWalk goes over a program twice: first for the last uses of values, then for what is live.
type shapeWalk struct {
	*shape
	at       int                    // number of the instruction
	last     map[*program.Value]int // use of each value
	made     map[*program.Value]int // the instruction that makes it; of parameters none
	now      float64                // registers held
	ending   map[int]float64        // registers that are free after an instruction
	run      struct{ bytes, loads float64 }
	bytes    float64
	requests float64
}

// ends notes last uses. What a loop reads from outside is live until its end.
func (w *shapeWalk) ends(b *program.Block) {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		w.at++
		w.use(in.Args)
		first := w.at
		for _, body := range []*program.Block{in.Body, in.Else} {
			if body != nil {
				w.make(body.Args...)
				w.ends(body)
			}
		}
		if in.Result != nil {
			w.make(in.Result)
		}
		w.make(in.Results...)
		if in.Op == program.For {
			visitUses(in.Body, func(v *program.Value) {
				if w.made[v] < first {
					w.last[v] = w.at
				}
			})
		}
	}
}

// make notes where values come from.
func (w *shapeWalk) make(values ...*program.Value) {
	for _, v := range values {
		w.made[v] = w.at
	}
}

func (w *shapeWalk) use(args []*program.Value) {
	for _, v := range args {
		w.last[v] = w.at
	}
}

// visitUses visits what is read in a block and in those inside of it.
func visitUses(b *program.Block, f func(v *program.Value)) {
	for i := range b.Instrs {
		for _, v := range b.Instrs[i].Args {
			f(v)
		}
		for _, body := range []*program.Block{b.Instrs[i].Body, b.Instrs[i].Else} {
			if body != nil {
				visitUses(body, f)
			}
		}
	}
}

func (w *shapeWalk) block(b *program.Block) {
	for _, v := range b.Args {
		w.hold(v)
	}
	for i := range b.Instrs {
		w.instruction(&b.Instrs[i])
	}
}

func (w *shapeWalk) instruction(in *program.Instr) {
	w.at++
	w.fixed++
	at := w.at
	switch {
	case in.Op == program.Barrier, in.Op == program.For, in.Op == program.If:
		w.settle()
		if in.Op == program.Barrier {
			w.barriers++
		}
	case in.Op == program.Load || in.Op == program.Guarded || in.Op == program.Gather:
		w.load(in)
	}
	if in.Body != nil {
		w.block(in.Body)
		w.settle()
	}
	if in.Else != nil {
		w.block(in.Else)
		w.settle()
	}
	if in.Result != nil {
		w.hold(in.Result)
	}
	for _, v := range in.Results {
		w.hold(v)
	}
	for n := at; n <= w.at; n++ {
		w.now -= w.ending[n]
		delete(w.ending, n)
	}
}

// load counts what is asked for of global memory.
func (w *shapeWalk) load(in *program.Instr) {
	for _, a := range in.Args {
		if a.Type.Ptr && a.Type.Space == program.GlobalSpace {
			n := float64(in.Result.Type.Bytes())
			w.run.bytes, w.run.loads = w.run.bytes+n, w.run.loads+1
			w.bytes, w.requests = w.bytes+n, w.requests+1
			return
		}
	}
}

// settle ends a row of loads.
func (w *shapeWalk) settle() {
	w.flight, w.loads = max(w.flight, w.run.bytes), max(w.loads, w.run.loads)
	w.run.bytes, w.run.loads = 0, 0
}

// hold makes a value live until its last use.
func (w *shapeWalk) hold(v *program.Value) {
	end, used := w.last[v]
	if !used || end <= w.at {
		return
	}
	words := float64((v.Type.Bytes() + 3) / 4)
	w.ending[end] += words
	w.now += words
	w.live = max(w.live, w.now)
}

// Registers that an assembler takes for what is live, and at most, and what a thread takes at least.
const (
	spareRegisters = 12
	leastRegisters = 24
	mostRegisters  = 255
)

// resident is how many blocks a multiprocessor has at once, by what is live; 1 elsewhere.
func resident(live float64, shared, threads int64, desc *target.Desc) float64 {
	if desc.Kind != target.GPU {
		return 1
	}
	f := Figures{Threads: threads, SharedBytes: int(shared)}
	f.Registers = int(min(max(live+spareRegisters, leastRegisters), mostRegisters))
	most := fewerThreads[desc.SM]
	if most == 0 {
		most = mostThreads
	}
	return max(occupancy(&f, desc)*float64(most)/float64(max(threads, 1)), 1)
}
