package gpu

import (
	"slices"

	"tgc/ir/program"
)

// dotChains are the sums of four products that go into one another, and nowhere else.
type dotChains struct {
	uses  map[*program.Value]int            // instructions that read a value
	made  map[*program.Value]*program.Instr // shuffles
	first map[*program.Value]*program.Value // sums -> the first one of their chain
	goes  map[*program.Value]bool           // sums that are not the last ones
}

func dotChainsOf(p *program.Program) *dotChains {
	d := &dotChains{uses: make(map[*program.Value]int), made: make(map[*program.Value]*program.Instr),
		first: make(map[*program.Value]*program.Value), goes: make(map[*program.Value]bool)}
	p.Body.Each(func(in *program.Instr) {
		for k, a := range in.Args {
			if !slices.Contains(in.Args[:k], a) {
				d.uses[a]++
			}
		}
		if in.Op == program.Shuffle {
			d.made[in.Result] = in
		}
	})
	d.block(p.Body)
	return d
}

// block finds the chains of a block: what goes into a loop is read there more than once.
func (d *dotChains) block(b *program.Block) {
	own := make(map[*program.Value]bool)
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Op == program.Dot4 && in.Result.Type.Lanes == 1 {
			acc := in.Args[0]
			own[in.Result], d.first[in.Result] = true, in.Result
			if own[acc] && d.uses[acc] == 1 {
				d.first[in.Result], d.goes[acc] = d.first[acc], true
			}
		}
		for inner := range in.Blocks() {
			d.block(inner)
		}
	}
}

// wordOf is the vector of which a value is a word that is read once: by a shuffle, or as it is.
func (d *dotChains) wordOf(v *program.Value) (of *program.Value, word int, ok bool) {
	if v.Type.Lanes != 4 || d.uses[v] != 1 {
		return nil, 0, false
	}
	in := d.made[v]
	if in == nil {
		return v, 0, true
	}
	for i, from := range in.Mask {
		if from != in.Mask[0]+i || from >= in.Args[0].Type.Lanes || in.Mask[0]%4 != 0 {
			return v, 0, true
		}
	}
	return in.Args[0], in.Mask[0] / 4, true
}
