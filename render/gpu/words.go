package gpu

import "tgc/ir/program"

// Piece is a part of a contiguous access: Width bytes at Off.
type Piece struct{ Off, Width int }

// Pieces cuts n bytes that start aligned to align into the widest accesses that
// the alignment allows: 16, 8, 4 bytes, then halves and bytes.
func Pieces(n, align int) []Piece {
	var out []Piece
	for off := 0; off < n; {
		width := 16
		for width > align || off%width != 0 || off+width > n {
			width /= 2
		}
		out = append(out, Piece{off, width})
		off += width
	}
	return out
}

// LaneSource tells where the lanes of a Shuffle's or Concat's result come from;
// nil for other instructions.
func LaneSource(in *program.Instr) func(lane int) (v *program.Value, at int) {
	switch in.Op {
	case program.Shuffle:
		n := in.Args[0].Type.Lanes
		return func(i int) (*program.Value, int) { m := max(in.Mask[i], 0); return in.Args[m/n], m % n }
	case program.Concat:
		return func(i int) (*program.Value, int) {
			for _, a := range in.Args {
				if i < a.Type.Lanes {
					return a, i
				}
				i -= a.Type.Lanes
			}
			panic("render/gpu: lane past a concat")
		}
	}
	return nil
}

// WordPlan is a word of packed lanes made of those of at most two other words:
// one byte permute.
type WordPlan struct {
	Sources []WordSource
	lanes   []struct{ source, lane int }
}

// WordSource is a 32-bit word of a packed vector.
type WordSource struct {
	Value *program.Value
	Word  int
}

// Add appends a lane of a source; false when it would be a third source.
func (p *WordPlan) Add(v *program.Value, word, lane int) bool {
	s := WordSource{v, word}
	for i := range p.Sources {
		if p.Sources[i] == s {
			p.lanes = append(p.lanes, struct{ source, lane int }{i, lane})
			return true
		}
	}
	if len(p.Sources) == 2 {
		return false
	}
	p.Sources = append(p.Sources, s)
	p.lanes = append(p.lanes, struct{ source, lane int }{len(p.Sources) - 1, lane})
	return true
}

// Selector is the byte permute's, a nibble a byte, for lanes of size bytes.
func (p *WordPlan) Selector(size int) int {
	selector := 0
	for k, l := range p.lanes {
		for b := range size {
			selector |= (4*l.source + size*l.lane + b) << (4 * (size*k + b))
		}
	}
	return selector
}

// Identity reports that the word is the source itself.
func (p *WordPlan) Identity(size int) bool {
	return len(p.Sources) == 1 && p.Selector(size) == 0x3210
}
