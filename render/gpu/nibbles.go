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
func nibblePairs(p *program.Program) (map[*program.Value]nibbles, *nibbleFinder) {
	f := &nibbleFinder{consts: make(map[*program.Value]uint64), origin: make(map[*program.Value]*program.Value),
		halves: make(map[*program.Value]nibbles), from: make(map[lookedUp]*program.Value),
		gathers: make(map[*program.Value]*program.Instr), looked: make(map[*program.Value]lookedUp)}
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
	consts map[*program.Value]uint64         // u8, the same in every lane
	origin map[*program.Value]*program.Value // of casts from u8
	halves map[*program.Value]nibbles
	from   map[lookedUp]*program.Value

	gathers map[*program.Value]*program.Instr // look-ups by nibbles, by result
	looked  map[*program.Value]lookedUp       // what they look up
}

// lookedUp are nibbles that are looked up in a table.
type lookedUp struct {
	table *program.Value
	nibbles
}

func (f *nibbleFinder) instr(in *program.Instr) {
	switch {
	case in.Op == program.Const && in.Result.Type.Elem == ir.U8:
		f.consts[in.Result] = uint64(in.Int)
	case in.Op == program.Alu && in.Ir == ir.OpCast && in.Args[0].Type.Elem == ir.U8:
		f.origin[in.Result] = in.Args[0]
	case in.Op == program.Alu && in.Result.Type.Elem == ir.U8:
		if h, ok := f.half(in); ok {
			f.halves[in.Result] = h
		}
	case in.Op == program.Gather:
		from := f.origin[in.Args[1]]
		if h, ok := f.halves[from]; ok {
			key := lookedUp{in.Args[0], h}
			f.from[key], f.gathers[in.Result], f.looked[in.Result] = from, in, key
		}
	}
}

// half recognises x & 15, (x >> 4) & 15 and x >> 4 of bytes.
func (f *nibbleFinder) half(in *program.Instr) (nibbles, bool) {
	if len(in.Args) != 2 {
		return nibbles{}, false
	}
	x, c := in.Args[0], f.consts[in.Args[1]]
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
