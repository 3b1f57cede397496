package lower

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
)

// Sums of different packed weights along one range, gate and up of a feed-forward layer, share a loop: what both multiply is loaded once.
// For some tokens registers no longer hold what both need. Then each has a loop of its own (Opt SUMS), since what does not fit is moved to
// memory and back in every iteration.

// crowdedLoop is how many registers two sums need from which their loops are apart, on cores that have as many and on those that have half of
// them: these keep the outer sums in memory, which each group reads and writes once. Gate and up of 8192 x 2048, us together and apart, and
// the registers counted: one Zen 5 core, exact, Q6_K of 6 tokens 21,790 and 11,990 (34), IQ4_XS of 6 10,750 and 7,460 (34), Q4_K of 6 10,150 and
// 8,110 (34), of 4 5,430 and 5,800 (26); int8, Q2_K of 8 9,080 and 6,100 (72), IQ3_S of 4 2,010 and 3,720 (32), Q6_K of 2 2,900 and 3,990 (26). As AVX2
// code, exact, Q4_K of 4 15,430 and 12,930 (42), of 2 6,660 and 9,450 (26).
const crowdedLoop = 32

// spareRegisters are those for a code as a float, and for a mask.
const spareRegisters = 2

// plainFields are those of codes with one scale, which are used as soon as they are read: their sums gain more by what they share. Zen 5, Q8_0,
// 8 tokens, us: exact 10,100 and 11,200, int8 4,480 and 6,070.
const plainFields = 2

// decoding is what a sum that decodes packed weights itself, not in a stage, keeps in registers.
type decoding struct {
	buffers   []*ir.UOp // of the weights; none: it decodes nothing
	registers int
}

// loopRoom is what the reduces of a loop decode, and what those do that the loop has no room for.
type loopRoom struct {
	decoding
	others []*ir.UOp
	chosen *program.Options
}

// takes reports a reduce that has room beside those of the loop, and counts it among them.
func (r *loopRoom) takes(d decoding) bool {
	if r.leaves(d) {
		return false
	}
	r.buffers, r.registers = append(r.buffers, d.buffers...), r.registers+d.registers
	return true
}

// leaves reports a reduce that shall have a loop of its own, and notes its weights: it asks for their lines there.
func (r *loopRoom) leaves(d decoding) bool {
	apart := r.apart(d)
	if apart {
		r.others = append(r.others, d.buffers...)
	}
	return apart
}

// apart reports a reduce of weights of its own that shall have a loop of its own.
func (r *loopRoom) apart(d decoding) bool {
	shared := func(b *ir.UOp) bool { return slices.Contains(r.buffers, b) }
	if len(d.buffers) == 0 || len(r.buffers) == 0 || slices.ContainsFunc(d.buffers, shared) {
		return false
	}
	if r.chosen.Of(program.Sums) != 0 {
		return r.chosen.Is(program.Sums, "apart")
	}
	return r.registers+d.registers+spareRegisters > crowdedLoop
}

// decodingOf counts the accumulators of a reduce, so many registers in each of the sums around each other, and the fields that a code is put
// together of.
func decodingOf(u *ir.UOp, accumulators int) (d decoding) {
	fields := 0
	ir.Walk(func(x *ir.UOp) []*ir.UOp {
		switch {
		case x.Op == ir.OpStage:
			return nil
		case x.Op == ir.OpField:
			fields++
			if !slices.Contains(d.buffers, x.Src[0]) {
				d.buffers = append(d.buffers, x.Src[0])
			}
		}
		return x.Src
	}, u)
	if fields <= plainFields {
		return decoding{}
	}
	d.registers = accumulators*sumLevels(u) + fields
	return d
}

// sumLevels is how many sums that decode weights are around each other, the outermost one included.
func sumLevels(u *ir.UOp) int {
	levels := make(map[*ir.UOp]int) // -1: nothing is decoded
	for _, x := range ir.Toposort(u) {
		n := -1
		if x.Op == ir.OpField {
			n = 0
		}
		if x.Op != ir.OpStage {
			for _, y := range x.Src {
				n = max(n, levels[y])
			}
		}
		if n >= 0 && analyse.IsSum(x) && !analyse.IsSum(x.Src[0]) {
			n++
		}
		levels[x] = n
	}
	return levels[u]
}
