package opt

import "tgc/ir/program"

// Copies of a sum load what they need themselves: of the scales of eight blocks that lie side
// by side, two bytes each. A thread may load 16 bytes at once, and the first level of cache
// takes as long for 2 as for 16 of each of a warp's lines.

// mostLoaded is how many bytes a thread loads at once.
const mostLoaded = 16

// joinLoads lets loads of a block whose bytes lie side by side be one, where the program does
// not write them and their place is known to be aligned. It comes where the first of them stood.
func joinLoads(p *program.Program) {
	renumber(p)
	j := &loadJoiner{Builder: program.Resume(p), addressFinder: addressesIn(p)}
	j.block(p.Body)
	if j.joined {
		j.Finish()
		dropUnreadIn(p.Body, p.Readers(), isPointer)
	}
}

type loadJoiner struct {
	*program.Builder
	addressFinder
	joined bool
}

// part is what a load becomes: lanes of a wider one.
type part struct {
	of    *wideLoad
	lanes int // before it
}

type wideLoad struct {
	first loaded // by its place
	loads int
	value *program.Value
}

// block writes a block and those in it anew.
func (j *loadJoiner) block(b *program.Block) {
	instrs := b.Instrs
	parts := j.parts(instrs)
	b.Instrs = make([]program.Instr, 0, len(instrs))
	for i := range instrs {
		in := instrs[i]
		for inner := range in.Blocks() {
			j.block(inner)
		}
		j.With(b, func() {
			if p, ok := parts[in.Result]; ok {
				in = j.taken(in, p)
			}
			j.Emit(in)
		})
	}
}

// parts are the loads of a block that become parts of wider ones.
func (j *loadJoiner) parts(instrs []program.Instr) map[*program.Value]part {
	parts := make(map[*program.Value]part)
	for key, list := range j.alike(instrs) {
		for len(list) > 1 {
			n := adjoining(list, key.typ.Bytes())
			if n > 1 {
				wide := &wideLoad{first: list[0], loads: n}
				for k, l := range list[:n] {
					parts[l.instr.Result] = part{wide, k * key.typ.Lanes}
				}
			}
			list = list[n:]
		}
	}
	return parts
}

// adjoining is how many of the first loads of a list, of so many bytes each, can be one.
func adjoining(list []loaded, bytes int) int {
	n := 1
	for 2*n <= len(list) && 2*n*bytes <= min(mostLoaded, list[0].instr.Align) {
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
func (j *loadJoiner) taken(in program.Instr, p part) program.Instr {
	before := j.MakeFor(in.Result.Origin)
	defer j.MakeAgainFor(before)
	j.joined = true
	typ := in.Result.Type
	if p.of.value == nil {
		pointer := in.Args[0]
		if d := p.of.first.bytes - j.placeOf(pointer).bytes; d != 0 {
			pointer = j.PtrAdd(pointer, j.Index(d/int64(typ.Elem.Size())))
		}
		wide := p.of.first.instr
		load := program.Instr{Op: program.Load, Result: j.NewValue(program.Vector(typ.Elem, p.of.loads*typ.Lanes)), Args: []*program.Value{pointer}, Align: wide.Align, Cache: wide.Cache}
		j.Emit(load)
		p.of.value = load.Result
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

// isPointer reports the arithmetic of a pointer.
func isPointer(in *program.Instr) bool {
	return in.Result != nil && in.Result.Type.Ptr && (in.Op == program.PtrAdd || in.Op == program.Alu)
}
