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
	renumber(p)
	x := &wordExchanger{Builder: program.Resume(p), addressFinder: addressesIn(p)}
	x.block(p.Body)
	if x.exchanged {
		x.Finish()
		dropUnreadIn(p.Body, p.Readers(), isPointer)
	}
}

type wordExchanger struct {
	*program.Builder
	addressFinder
	exchanged bool
}

// exchange is four loads that become one.
type exchange struct {
	first loaded
	lane  *program.Value // of the quad
	words []*program.Value
}

// wordOf says which word of an exchange a load becomes.
type wordOf struct {
	of   *exchange
	word int
}

// block writes a block and those in it anew.
func (x *wordExchanger) block(b *program.Block) {
	instrs := b.Instrs
	words := x.exchanges(instrs)
	b.Instrs = make([]program.Instr, 0, len(instrs))
	for i := range instrs {
		in := instrs[i]
		for inner := range in.Blocks() {
			x.block(inner)
		}
		x.With(b, func() {
			if w, ok := words[in.Result]; ok && in.Result != nil {
				in = x.exchangedWord(in, w)
			}
			x.Emit(in)
		})
	}
}

// exchanges are the loads of a block that quads exchange.
func (x *wordExchanger) exchanges(instrs []program.Instr) map[*program.Value]wordOf {
	if !slices.ContainsFunc(instrs, func(in program.Instr) bool { return in.Op == program.Mma }) {
		return nil
	}
	words := make(map[*program.Value]wordOf)
	for key, list := range x.alike(instrs) {
		if key.typ.Elem.Size() != 1 || key.typ.Bytes() != wordSize {
			continue
		}
		at := x.linear(key.from)
		lane := x.quadLane(at)
		for len(list) >= quadLanes && lane != nil {
			n := 1
			if (at.bytes+list[0].bytes)%quadBytes == 0 && inSteps(list[:quadLanes], quadBytes) {
				n = quadLanes
				e := &exchange{first: list[0], lane: lane}
				for k, l := range list[:n] {
					words[l.instr.Result] = wordOf{e, k}
				}
			}
			list = list[n:]
		}
	}
	return words
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
func (x *wordExchanger) quadLane(at linear) (lane *program.Value) {
	param := x.memory.Param(at.from)
	if param == nil || param.Align%quadBytes != 0 {
		return nil
	}
	for v, bytes := range at.terms {
		switch {
		case bytes == wordSize && lane == nil && x.isQuadLane(v):
			lane = v
		case bytes%quadBytes != 0 || !x.sameInQuad(v) || x.varies[v] && max(bytes, -bytes) < leastApart:
			return nil
		}
	}
	return lane
}

// exchangedWord is a load as a word of an exchange, which is written where the first of them stands.
func (x *wordExchanger) exchangedWord(in program.Instr, w wordOf) program.Instr {
	before := x.MakeFor(in.Result.Origin)
	defer x.MakeAgainFor(before)
	x.exchanged = true
	if w.of.words == nil {
		x.exchange(in, w.of)
	}
	return program.Instr{Op: program.Alu, Ir: ir.OpBitcast, Result: in.Result, Args: []*program.Value{w.of.words[w.word]}}
}

// exchange loads what a lane has for its quad and transposes: with words i of lanes t as m[t][i], lanes get m[i][t].
func (x *wordExchanger) exchange(in program.Instr, e *exchange) {
	size := int64(in.Result.Type.Elem.Size())
	ahead := x.Add(x.Mul(e.lane, x.Index(quadBytes-wordSize)), x.Index((e.first.bytes-x.placeOf(in.Args[0]).bytes)/size))
	all := x.LoadCached(x.PtrCast(x.PtrAdd(in.Args[0], ahead), ir.U32), quadLanes, quadBytes, in.Cache)
	for i := range quadLanes {
		e.words = append(e.words, x.Extract(all, i))
	}
	for mask := 1; mask < quadLanes; mask *= 2 {
		upper := x.Eq(x.Alu(ir.OpAnd, e.lane, x.Int(e.lane.Type, int64(mask))), x.Int(e.lane.Type, int64(mask)))
		for i := range quadLanes {
			if i&mask == 0 {
				x.swap(&e.words[i], &e.words[i|mask], upper, int64(mask))
			}
		}
	}
}

// swap exchanges the first word of lanes that are upper with the second of the others.
func (x *wordExchanger) swap(first, second **program.Value, upper *program.Value, mask int64) {
	got := x.ShuffleLane(x.Where(upper, *first, *second), x.Int(program.Scalar(ir.I32), mask))
	*first, *second = x.Where(upper, got, *first), x.Where(upper, *second, got)
}
