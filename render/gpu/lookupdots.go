package gpu

import (
	"tgc/ir/program"
)

// Sums of products with bytes that are looked up in a table of 16 by the lower and the upper
// halves of the same bytes. The sum does not ask for an order: the look-ups stay as they lie,
// lower and upper halves in turn, and the other factors, which rows share, are put into that
// order instead. Nor does it ask for one byte each: a permute by a nibble gives the byte of
// its half of the table, and for the other half the sign of a byte there, which is 0 or -1;
// what two permutes give adds up to the byte if the halves take account of that.

// lookupDot is a dot4 of which a factor is a word that was looked up.
type lookupDot struct {
	in      *program.Instr
	factor  int // the argument that was looked up
	gather  *program.Instr
	word    int
	partner *lookupDot // of the other halves of the same bytes, in the same chain of sums
	last    bool       // the later one of the two
}

// lookupDots finds dot4s that come in such pairs, by their results, where nothing else reads
// what they look up.
func lookupDots(p *program.Program, f *nibbleFinder, chains *dotChains) map[*program.Value]*lookupDot {
	d := &dotFinder{nibbles: f, dotChains: chains, dots: make(map[*program.Value]*lookupDot)}
	p.Body.Each(func(in *program.Instr) {
		if in.Op == program.Dot4 {
			d.dot(in)
		}
	})
	return d.paired()
}

type dotFinder struct {
	*dotChains
	nibbles *nibbleFinder
	dots    map[*program.Value]*lookupDot // by result
	order   []*lookupDot
}

// dot notes a sum of products with a word of looked-up bytes.
func (d *dotFinder) dot(in *program.Instr) {
	for k := 1; k <= 2; k++ {
		if of, word, ok := d.wordOf(in.Args[k]); ok && d.nibbles.looked[of].table != nil {
			dot := &lookupDot{in: in, factor: k, gather: d.made[of], word: word}
			d.dots[in.Result] = dot
			d.order = append(d.order, dot)
			return
		}
	}
}

// paired are the dots of those look-ups of which all words are in pairs.
func (d *dotFinder) paired() map[*program.Value]*lookupDot {
	type place struct {
		lookedUp
		chain *program.Value
		word  int
	}
	at := make(map[place]*lookupDot)
	pairs := make(map[*program.Value]int) // words of a look-up
	for _, dot := range d.order {
		key := place{d.nibbles.looked[dot.gather.Result], d.first[dot.in.Result], dot.word}
		at[key] = dot
		key.upper = !key.upper
		if other := at[key]; other != nil && other.partner == nil && other.factor == dot.factor {
			dot.partner, other.partner, dot.last = other, dot, true
			pairs[dot.gather.Result]++
			pairs[other.gather.Result]++
		}
	}
	whole := func(g *program.Instr) bool {
		return d.nibbles.from[d.nibbles.looked[g.Result]] == d.bytesOf(g.Args[1]) && pairs[g.Result] == d.readers[g.Result] && 4*pairs[g.Result] == g.Result.Type.Lanes
	}
	for v, dot := range d.dots {
		if dot.partner == nil || !whole(dot.gather) || !whole(dot.partner.gather) {
			delete(d.dots, v)
		}
	}
	return d.dots
}

// splitLevels are the two halves of a table of 16 such that the byte of each entry is a sum: of
// that of its half and of -1 where the byte that the other half has in its place is negative.
func splitLevels(table []byte) (halves []byte, ok bool) {
	if len(table) != 16 {
		return nil, false
	}
	halves = make([]byte, 16)
	sign := func(x int) int { return -(x >> 31 & 1) }
	for n := range 8 {
		low, high := int(int8(table[n])), int(int8(table[n+8]))
		found := false
		for signs := range 4 {
			x, y := low+signs>>1, high+signs&1
			if sign(x) == -(signs&1) && sign(y) == -(signs>>1) && x == int(int8(x)) && y == int(int8(y)) {
				halves[n], halves[n+8], found = byte(x), byte(y), true
				break
			}
		}
		if !found {
			return nil, false
		}
	}
	return halves, true
}
