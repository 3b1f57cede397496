package gpu

import (
	"tgc/ir"
	"tgc/ir/program"
)

// nibbles are the lower or the upper halves of packed bytes.
type nibbles struct {
	of    *program.Value
	upper bool
}

// nibblePairs finds vectors of nibbles that are looked up in one table with those which
// are the other halves of the same bytes.
func nibblePairs(p *program.Program, d definitions) (map[*program.Value]nibbles, *nibbleFinder) {
	f := &nibbleFinder{definitions: d, halves: make(map[*program.Value]nibbles), from: make(map[lookedUp]*program.Value),
		looked: make(map[*program.Value]lookedUp)}
	p.Body.Each(f.instr)
	pairs := make(map[*program.Value]nibbles)
	for key, from := range f.from {
		other := key
		other.upper = !key.upper
		if f.from[other] != nil {
			pairs[from] = key.nibbles
		}
	}
	return pairs, f
}

type nibbleFinder struct {
	definitions
	halves map[*program.Value]nibbles
	from   map[lookedUp]*program.Value
	looked map[*program.Value]lookedUp // what look-ups by nibbles look up, by their results
}

// lookedUp are nibbles that are looked up in a table.
type lookedUp struct {
	table *program.Value
	nibbles
}

func (f *nibbleFinder) instr(in *program.Instr) {
	switch {
	case in.Op == program.Alu && in.Result.Type.Elem == ir.U8:
		if h, ok := f.half(in); ok {
			f.halves[in.Result] = h
		}
	case in.Op == program.Gather:
		from := f.bytesOf(in.Args[1])
		if h, ok := f.halves[from]; ok {
			key := lookedUp{in.Args[0], h}
			f.from[key], f.looked[in.Result] = from, key
		}
	}
}

// bytesOf is what v is a conversion of, nil if it is none of bytes.
func (d definitions) bytesOf(v *program.Value) *program.Value {
	if in := d.alu(v, ir.OpCast); in != nil && in.Args[0].Type.Elem == ir.U8 {
		return in.Args[0]
	}
	return nil
}

// half recognises x & 15, (x >> 4) & 15 and x >> 4 of bytes.
func (f *nibbleFinder) half(in *program.Instr) (nibbles, bool) {
	if len(in.Args) != 2 {
		return nibbles{}, false
	}
	c, _ := f.integer(in.Args[1])
	x := in.Args[0]
	switch {
	case in.Ir == ir.OpShr && c == 4:
		return nibbles{x, true}, true
	case in.Ir == ir.OpAnd && c == 15:
		if h, ok := f.halves[x]; ok && h.upper {
			return h, true
		}
		return nibbles{x, false}, true
	}
	return nibbles{}, false
}
