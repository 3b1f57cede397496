package gpu

import "tgc/ir/program"

// dotChains are the sums of four products that go into one another, and nowhere else.
type dotChains struct {
	definitions
	first map[*program.Value]*program.Value // sums -> the first one of their chain
	goes  map[*program.Value]bool           // sums that are not the last ones
}

func dotChainsOf(p *program.Program, defs definitions) *dotChains {
	d := &dotChains{defs, make(map[*program.Value]*program.Value), make(map[*program.Value]bool)}
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
			if own[acc] && d.readers[acc] == 1 {
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
	if v.Type.Lanes != 4 || d.readers[v] != 1 {
		return nil, 0, false
	}
	if in := d.made[v]; in != nil {
		if word, ok := in.TakesWord(); ok {
			return in.Args[0], word, true
		}
	}
	return v, 0, true
}
