package opt

import "tgc/ir/program"

// Copies of a sum load what they need themselves: of the scales of eight blocks that lie side
// by side, two bytes each. A thread may load 16 bytes at once, and the first level of cache
// takes as long for 2 as for 16 of each of a warp's lines.

// joinLoads lets loads of a block whose bytes lie side by side be one, where the program does
// not write them and their place is known to be aligned. It comes where the first of them stood.
func joinLoads(p *program.Program) { replaceLoads(p, (*loadWriter).sideBySideLoads) }

// part is what a load becomes: lanes of a wider one.
type part struct {
	of    *wideLoad
	lanes int // before it
}

type wideLoad struct {
	first loaded // by its place
	loads int
	align int
	value *program.Value
}

// sideBySideLoads replaces the loads of a block that become parts of wider ones.
func (w *loadWriter) sideBySideLoads(instrs []program.Instr) replacements {
	out := make(replacements)
	for key, list := range w.alike(instrs) {
		for len(list) > 1 {
			n := adjoining(list, key.typ.Bytes(), max(list[0].instr.Align, w.alignOf(key.from, list[0].bytes)))
			if n > 1 {
				wide := &wideLoad{first: list[0], loads: n, align: n * key.typ.Bytes()}
				for k, l := range list[:n] {
					out[l.instr.Result] = func(in program.Instr) program.Instr { return w.taken(in, part{wide, k * key.typ.Lanes}) }
				}
			}
			list = list[n:]
		}
	}
	return out
}

// adjoining is how many of the first loads of a list, of so many bytes each, can be one, the first being aligned.
func adjoining(list []loaded, bytes, align int) int {
	n := 1
	for 2*n <= len(list) && 2*n*bytes <= min(mostLoaded, align) {
		for k := n; k < 2*n; k++ {
			if list[k].bytes != list[0].bytes+int64(k*bytes) {
				return n
			}
		}
		n *= 2
	}
	return n
}

// taken is a load as lanes of a wider one, which is written where the first of them stands.
func (w *loadWriter) taken(in program.Instr, p part) program.Instr {
	typ := in.Result.Type
	if p.of.value == nil {
		pointer := in.Args[0]
		if d := p.of.first.bytes - w.placeOf(pointer).bytes; d != 0 {
			pointer = w.PtrAdd(pointer, w.Index(d/int64(typ.Elem.Size())))
		}
		p.of.value = w.LoadCached(pointer, p.of.loads*typ.Lanes, p.of.align, in.Cache)
	}
	if typ.Lanes == 1 {
		return program.Instr{Op: program.Extract, Result: in.Result, Args: []*program.Value{p.of.value}, Lane: p.lanes}
	}
	mask := make([]int, typ.Lanes)
	for k := range mask {
		mask[k] = p.lanes + k
	}
	return program.Instr{Op: program.Shuffle, Result: in.Result, Args: []*program.Value{p.of.value, p.of.value}, Mask: mask}
}
