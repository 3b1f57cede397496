package opt

import (
	"cmp"
	"slices"

	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// leastRead is from how many registers on a load counts as activations of a row.
const leastRead = 4

// orderRows orders what a block does with its rows, where it does so once: with the
// activations of a row in registers, weights of the last rows would be loaded only
// when the first have been used.
func orderRows(p *program.Program) {
	w := weightsOf(p)
	body := w.body
	for i := 0; i < len(body.Instrs); i++ {
		end := i
		reads := make(map[*program.Value]bool)
		registers := 0
		for end < len(body.Instrs) && dep.Free(&body.Instrs[end]) {
			in := &body.Instrs[end]
			switch {
			case w.isStreamed(in):
				registers += in.Result.Type.Registers()
			case in.Op == program.Load && in.Result.Type.Registers() >= leastRead:
				reads[in.Result] = true
			}
			end++
		}
		if registers > 0 && len(reads) > 1 && w.crowded(registers) {
			body.Instrs = append(body.Instrs[:i:i], w.orderByReads(body.Instrs[i:], reads)...)
		}
		i = end
	}
}

// orderByReads orders the arithmetic at the head of a block by the reads that it needs,
// one after the other, so that few of them are in registers at once; what needs none
// comes where it is used first. Loads of weights stay at the head.
func (w *weights) orderByReads(instrs []program.Instr, reads map[*program.Value]bool) []program.Instr {
	n := 0
	for n < len(instrs) && dep.Free(&instrs[n]) {
		n++
	}
	turns := w.turns(instrs[:n], reads)
	return inPlaces(instrs, 0, n, len(turns), func(in *program.Instr) int { return turns[in.Result] }, w.isStreamed)
}

// turns is the order of reads, from 1: that of the first weights that they meet, so
// that those of several tokens which meet the same weights follow each other while
// these are in registers.
func (w *weights) turns(instrs []program.Instr, reads map[*program.Value]bool) map[*program.Value]int {
	made := make(map[*program.Value]int)
	needs := make([]*program.Value, len(instrs)) // the read that an instruction needs, of several the last
	ofWeights := make([]bool, len(instrs))       // it needs weights, and no read
	meets := make(map[*program.Value]int)        // where the first weights are made that a read meets
	var order []*program.Value
	for i := range instrs {
		in := &instrs[i]
		made[in.Result] = i
		if reads[in.Result] {
			needs[i] = in.Result
			order = append(order, in.Result)
			continue
		}
		ofWeights[i] = w.isStreamed(in)
		weight := -1
		for _, a := range in.Args {
			j, ok := made[a]
			switch {
			case !ok:
			case needs[j] != nil:
				needs[i] = needs[j]
			case ofWeights[j]:
				weight, ofWeights[i] = j, true
			}
		}
		if r := needs[i]; r != nil {
			ofWeights[i] = false
			if _, met := meets[r]; !met && weight >= 0 {
				meets[r] = weight
			}
		}
	}
	last := 0
	for _, r := range order { // one that meets none follows the one before it
		if at, met := meets[r]; met {
			last = at
		}
		meets[r] = last
	}
	slices.SortStableFunc(order, func(x, y *program.Value) int { return cmp.Compare(meets[x], meets[y]) })
	turns := make(map[*program.Value]int)
	for k, r := range order {
		turns[r] = k + 1
	}
	return turns
}
