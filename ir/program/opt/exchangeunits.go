package opt

import (
	"slices"

	"tgc/ir"
	"tgc/ir/program"
)

// Fragments of matrix instructions: the four lanes of a quad have a unit each of a row, of one, two, four or eight bytes, and the eight
// quads of a warp a row each. A load of units reads a few bytes of each of eight lines, which takes the first level of cache as
// long as all 128 of each would. So each lane loads what its quad wants of one of several copies that lie in a line, up to
// 16 bytes, and the quad exchanges the units: a transposition, in two steps of two shuffles for four words. Units of eight bytes are
// exchanged by pairs of lanes, in one step, and those of a byte need none: each lane loads all of four copies, and takes its own.

const (
	wordSize  = 4   // bytes that a shuffle moves
	lineBytes = 128 // of the first level of cache
	// leastApart is how many bytes apart the rows of quads must be at least: those that are nearer share lines already.
	leastApart = 64
)

// exchangeUnits lets the lanes of a quad load for each other where copies of units lie in a line. It is done beside matrix
// instructions, where all threads of a warp are at the same place.
func exchangeUnits(p *program.Program) {
	if len(p.Block) != 1 {
		return
	}
	replaceLoads(p, (*loadWriter).exchangedLoads)
}

// exchange is loads of several copies that become one.
type exchange struct {
	first  loaded
	lane   *program.Value // of those that exchange
	unit   int            // bytes of a lane in a copy
	step   int64          // bytes from copy to copy
	copies []*program.Value
}

// lanesOf is how many lanes, side by side, exchange units of so many bytes, of as many copies.
func lanesOf(unit int) int {
	return min(quadLanes, mostLoaded/unit)
}

// alignmentOf is how many bytes a lane loads, which must be aligned: its own of all copies, or all lanes' of one.
func alignmentOf(unit int) int64 {
	if unit == 1 {
		return mostLoaded
	}
	return int64(unit * lanesOf(unit))
}

// exchangedLoads replaces the loads of a block that quads exchange.
func (w *loadWriter) exchangedLoads(instrs []program.Instr) replacements {
	if !slices.ContainsFunc(instrs, multipliesBytes) {
		return nil
	}
	out := make(replacements)
	for key, list := range w.alike(instrs) {
		unit := key.typ.Bytes()
		if key.typ.Elem.Size() != 1 || !slices.Contains([]int{1, 2, wordSize, 2 * wordSize}, unit) {
			continue
		}
		at, copies := w.linear(key.from), lanesOf(unit)
		lane := w.lane(at, int64(unit))
		for len(list) >= copies && lane != nil {
			n, step := 1, list[1].bytes-list[0].bytes
			if (at.bytes+list[0].bytes)%alignmentOf(unit) == 0 && mayStep(unit, step) && inSteps(list[:copies], step) {
				n = copies
				e := &exchange{first: list[0], lane: lane, unit: unit, step: step}
				for k, l := range list[:n] {
					out[l.instr.Result] = func(in program.Instr) program.Instr { return w.exchanged(in, e, k) }
				}
			}
			list = list[n:]
		}
	}
	return out
}

// multipliesBytes reports a matrix instruction that takes bytes as they are loaded. What makes floats of them first is bound by that.
func multipliesBytes(in program.Instr) bool {
	return in.Op == program.Mma && in.Args[1].Type.Elem.Size() == 1
}

// mayStep reports copies so many bytes apart that a line has all of them, and a lane can load its bytes of one; or of all, side by side.
func mayStep(unit int, step int64) bool {
	if unit == 1 {
		return step == quadLanes
	}
	return step%alignmentOf(unit) == 0 && step*int64(lanesOf(unit)) <= lineBytes
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

// lane is the number of a thread among those that exchange, where that is what places them a unit apart in memory, and those of
// other quads far apart; nil otherwise.
func (w *loadWriter) lane(at linear, unit int64) (lane *program.Value) {
	param, lanes, aligned := w.memory.Param(at.from), int64(lanesOf(int(unit))), alignmentOf(int(unit))
	if param == nil || int64(param.Align)%aligned != 0 {
		return nil
	}
	for v, bytes := range at.terms {
		switch {
		case bytes == unit && lane == nil && (w.isQuadLane(v) || w.isPairLane(v) && lanes == 2):
			lane = v
		case lanes == 2 && w.isPair(v) && bytes%aligned == 0: // of the quad: the same for both lanes
		case bytes%aligned != 0 || !w.sameInQuad(v) || w.varies[v] && max(bytes, -bytes) < leastApart:
			return nil
		}
	}
	return lane
}

// exchanged is a load as a copy's unit of an exchange, which is written where the first of them stands.
func (w *loadWriter) exchanged(in program.Instr, e *exchange, k int) program.Instr {
	if e.copies == nil {
		switch all := w.loadForQuad(in, e); e.unit {
		case 1:
			e.copies = w.takeBytes(all, e.lane)
		case 2:
			e.copies = w.exchangeHalves(all, e.lane)
		default:
			e.copies = w.exchangeWords(all, e)
		}
	}
	return program.Instr{Op: program.Alu, Ir: ir.OpBitcast, Result: in.Result, Args: []*program.Value{e.copies[k]}}
}

// loadForQuad loads the words that a lane has for those that it exchanges with: their units of one copy, and of bytes all copies.
func (w *loadWriter) loadForQuad(in program.Instr, e *exchange) (words []*program.Value) {
	bytes := int(alignmentOf(e.unit))
	ahead := w.Mul(e.lane, w.Index(-1)) // to the first lane's byte
	if e.unit > 1 {
		ahead = w.Mul(w.Alu(ir.OpAnd, e.lane, w.Index(int64(lanesOf(e.unit)-1))), w.Index(e.step-int64(e.unit)))
	}
	ahead = w.Add(ahead, w.Index(e.first.bytes-w.placeOf(in.Args[0]).bytes))
	all := w.LoadCached(w.PtrCast(w.PtrAdd(in.Args[0], ahead), ir.U32), bytes/wordSize, bytes, in.Cache)
	for i := range bytes / wordSize {
		words = append(words, w.Extract(all, i))
	}
	return words
}

// takeBytes are a lane's bytes of each word.
func (w *loadWriter) takeBytes(words []*program.Value, lane *program.Value) []*program.Value {
	shift := w.Cast(w.Mul(lane, w.Index(8)), ir.U32)
	for i, word := range words {
		words[i] = w.Cast(w.Alu(ir.OpShr, word, shift), ir.U8)
	}
	return words
}

// exchangeHalves transposes halves of words. Lanes two apart swap words; then each word has the halves of a copy that both lanes of a pair
// want, and what both have of one lane's are one word.
func (w *loadWriter) exchangeHalves(words []*program.Value, lane *program.Value) []*program.Value {
	w.swap(words, 1, lane, 2)
	low, high := w.Int(words[0].Type, 0xffff), w.Int(words[0].Type, 16)
	join := func(x, y *program.Value) *program.Value { return w.Alu(ir.OpOr, x, y) }
	words = []*program.Value{
		join(w.Alu(ir.OpAnd, words[0], low), w.Alu(ir.OpShl, words[1], high)),
		join(w.Alu(ir.OpShr, words[0], high), w.Alu(ir.OpAnd, words[1], w.Int(words[0].Type, 0xffff0000))),
	}
	w.swap(words, 1, lane, 1)
	copies := make([]*program.Value, quadLanes)
	for i, word := range words {
		copies[i], copies[2+i] = w.Cast(word, ir.U16), w.Cast(w.Alu(ir.OpShr, word, high), ir.U16)
	}
	return copies
}

// exchangeWords transposes units of words.
func (w *loadWriter) exchangeWords(words []*program.Value, e *exchange) []*program.Value {
	copies, each := lanesOf(e.unit), e.unit/wordSize
	of := make([][]*program.Value, each) // the words of all units that stand at the same place in them
	for i := range words {
		of[i%each] = append(of[i%each], words[i])
	}
	for _, list := range of {
		for mask := 1; mask < copies; mask *= 2 {
			w.swap(list, mask, e.lane, mask)
		}
	}
	for k := range copies {
		unit := make([]*program.Value, each)
		for i, list := range of {
			unit[i] = list[k]
		}
		words[k] = w.Concat(unit...)
	}
	return words[:copies]
}

// swap exchanges words so many apart with the lanes whose numbers differ in a bit. With words i of lanes t as m[t][i], a step for each bit,
// by as many words, gives lanes m[i][t].
func (w *loadWriter) swap(words []*program.Value, step int, lane *program.Value, bit int) {
	mask := w.Int(lane.Type, int64(bit))
	upper := w.Eq(w.Alu(ir.OpAnd, lane, mask), mask)
	for i := range words {
		if i&step != 0 {
			continue
		}
		first, second := words[i], words[i+step]
		got := w.ShuffleLane(w.Where(upper, first, second), w.Int(program.Scalar(ir.I32), int64(bit)))
		words[i], words[i+step] = w.Where(upper, got, first), w.Where(upper, second, got)
	}
}
