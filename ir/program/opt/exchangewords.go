package opt

import (
	"slices"

	"tgc/ir"
	"tgc/ir/program"
)

// Fragments of matrix instructions: the four lanes of a quad have a word each of a row's 16 bytes, and the eight quads of a
// warp a row each. A load of such words reads 16 bytes of each of eight lines, which takes the first level of cache as long as all
// 128 of each would. So each lane loads the 16 bytes of one of four neighbouring copies instead, all words that its
// quad wants, and the quad exchanges them: a 4x4 transposition, in two steps of two shuffles.

// A quad's words.
const (
	wordSize  = 4
	quadBytes = quadLanes * wordSize
)

// exchangeWords lets the lanes of a quad load for each other where four loads of words lie side by side. It is done beside matrix
// instructions, where all threads of a warp are at the same place.
func exchangeWords(p *program.Program) {
	if len(p.Block) != 1 {
		return
	}
	replaceLoads(p, (*loadWriter).exchangedLoads)
}

// exchange is four loads that become one.
type exchange struct {
	first loaded
	lane  *program.Value // of the quad
	words []*program.Value
}

// exchangedLoads replaces the loads of a block that quads exchange.
func (w *loadWriter) exchangedLoads(instrs []program.Instr) replacements {
	if !slices.ContainsFunc(instrs, func(in program.Instr) bool { return in.Op == program.Mma }) {
		return nil
	}
	out := make(replacements)
	for key, list := range w.alike(instrs) {
		if key.typ.Elem.Size() != 1 || key.typ.Bytes() != wordSize {
			continue
		}
		at := w.linear(key.from)
		lane := w.quadLane(at)
		for len(list) >= quadLanes && lane != nil {
			n := 1
			if (at.bytes+list[0].bytes)%quadBytes == 0 && inSteps(list[:quadLanes], quadBytes) {
				n = quadLanes
				e := &exchange{first: list[0], lane: lane}
				for k, l := range list[:n] {
					out[l.instr.Result] = func(in program.Instr) program.Instr { return w.exchanged(in, e, k) }
				}
			}
			list = list[n:]
		}
	}
	return out
}

// inSteps reports loads so many bytes apart.
func inSteps(list []loaded, step int64) bool {
	for k := range list {
		if list[k].bytes != list[0].bytes+int64(k)*step {
			return false
		}
	}
	return true
}

// leastApart is how many bytes apart lanes of other quads must be at least: those that are nearer share lines already.
const leastApart = 64

// quadLane is the number of a thread within its quad, where that is what places threads of a quad a word apart in memory, and those of
// other quads far apart; nil otherwise.
func (w *loadWriter) quadLane(at linear) (lane *program.Value) {
	param := w.memory.Param(at.from)
	if param == nil || param.Align%quadBytes != 0 {
		return nil
	}
	for v, bytes := range at.terms {
		switch {
		case bytes == wordSize && lane == nil && w.isQuadLane(v):
			lane = v
		case bytes%quadBytes != 0 || !w.sameInQuad(v) || w.varies[v] && max(bytes, -bytes) < leastApart:
			return nil
		}
	}
	return lane
}

// exchanged is a load as a word of an exchange, which is written where the first of them stands.
func (w *loadWriter) exchanged(in program.Instr, e *exchange, word int) program.Instr {
	if e.words == nil {
		w.exchange(in, e)
	}
	return program.Instr{Op: program.Alu, Ir: ir.OpBitcast, Result: in.Result, Args: []*program.Value{e.words[word]}}
}

// exchange loads what a lane has for its quad and transposes: with words i of lanes t as m[t][i], lanes get m[i][t].
func (w *loadWriter) exchange(in program.Instr, e *exchange) {
	size := int64(in.Result.Type.Elem.Size())
	ahead := w.Add(w.Mul(e.lane, w.Index(quadBytes-wordSize)), w.Index((e.first.bytes-w.placeOf(in.Args[0]).bytes)/size))
	all := w.LoadCached(w.PtrCast(w.PtrAdd(in.Args[0], ahead), ir.U32), quadLanes, quadBytes, in.Cache)
	for i := range quadLanes {
		e.words = append(e.words, w.Extract(all, i))
	}
	for mask := 1; mask < quadLanes; mask *= 2 {
		upper := w.Eq(w.Alu(ir.OpAnd, e.lane, w.Int(e.lane.Type, int64(mask))), w.Int(e.lane.Type, int64(mask)))
		for i := range quadLanes {
			if i&mask == 0 {
				w.swap(&e.words[i], &e.words[i|mask], upper, int64(mask))
			}
		}
	}
}

// swap exchanges the first word of lanes that are upper with the second of the others.
func (w *loadWriter) swap(first, second **program.Value, upper *program.Value, mask int64) {
	got := w.ShuffleLane(w.Where(upper, *first, *second), w.Int(program.Scalar(ir.I32), mask))
	*first, *second = w.Where(upper, got, *first), w.Where(upper, *second, got)
}
