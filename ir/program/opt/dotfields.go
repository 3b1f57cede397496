package opt

import (
	"slices"

	"tgc/ir"
	"tgc/ir/program"
)

// A weight of four bits or two is a field of a byte. Sums of products of four bytes at once took it
// as a number: each word was shifted down and masked. Here a sum takes the bits where they lie, and
// is shifted once for all its words: (x>>s & m) * y is (x & m<<s) * y, divided by 2^s, without a rest.
// Shifts and masks have half the rate of an NVIDIA GPU's multiplications. What joins bits of two bytes
// is joined where one of them lies, if a byte has room for both there. Two sums in place of one cost
// more than they save (docs/bench/h200-fields.txt).

// dotFields makes sums of bytes read upper fields of weights in place.
func dotFields(p *program.Program) {
	renumber(p)
	f := &fielder{Builder: program.Resume(p), fieldFinder: fieldsIn(p), readers: p.Readers(), renamed: make(map[*program.Value]*program.Value)}
	f.block(p.Body)
	if len(f.renamed) == 0 {
		return
	}
	f.Finish()
	renameValues(p.Body, f.renamed)
	dropUnread(p)
}

type fielder struct {
	*program.Builder
	fieldFinder
	readers map[*program.Value]int
	renamed map[*program.Value]*program.Value // last sums of chains
	placed  map[*program.Value]*program.Value // fields in place, of the block that is being written
}

// fieldDot is a sum of products of four bytes, and the fields that a factor is a word of.
type fieldDot struct {
	in     program.Instr
	of     *program.Value // joined of the fields
	fields []field        // in place
	up     int            // so far up from where they are in of
	word   int
	factor int // its argument
}

// block writes a block and those in it anew.
func (f *fielder) block(b *program.Block) {
	outer, instrs := f.placed, b.Instrs
	f.placed = make(map[*program.Value]*program.Value)
	chains, inside := f.chains(instrs)
	b.Instrs = make([]program.Instr, 0, len(instrs))
	for i, in := range instrs {
		for inner := range in.Blocks() {
			f.block(inner)
		}
		f.With(b, func() {
			switch chain := chains[i]; {
			case chain != nil:
				before := f.MakeFor(in.Result.Origin)
				f.renamed[in.Result] = f.sum(chain)
				f.MakeAgainFor(before)
			case !inside[i]:
				f.Emit(in)
			}
		})
	}
	f.placed = outer
}

// chains finds sums that go into one another, and nowhere else, whose fields lie equally far
// up: by the last one, with the places of the others.
func (f *fielder) chains(instrs []program.Instr) (chains map[int][]fieldDot, inside map[int]bool) {
	chains, inside = make(map[int][]fieldDot), make(map[int]bool)
	open := make(map[*program.Value][]int) // chains by their last sums
	for i := range instrs {
		in := &instrs[i]
		if in.Op != program.Dot4 || in.Result.Type.Lanes > 1 {
			continue
		}
		list := append(open[in.Args[0]], i)
		if f.readers[in.Args[0]] > 1 {
			list = []int{i}
		}
		delete(open, in.Args[0])
		open[in.Result] = list
	}
	for _, list := range open {
		if chain := f.chain(instrs, list); chain != nil {
			last := len(list) - 1
			chains[list[last]] = chain
			for _, i := range list[:last] {
				inside[i] = true
			}
		}
	}
	return chains, inside
}

// Bounds of a chain. Of one with more dots the sums might leave 32 bits; each of the sums that share
// words needs a shift and an addition of its own, where a word saves one shift.
const (
	mostDots = 64
	perSum   = 2
)

// chain reads the factors of a chain; nil: it stays as it is.
func (f *fielder) chain(instrs []program.Instr, list []int) (chain []fieldDot) {
	if len(list) > mostDots {
		return nil
	}
	for _, i := range list {
		d, ok := f.dot(instrs[i])
		if !ok || len(chain) > 0 && d.up != chain[0].up || len(list) <= perSum*f.readers[d.in.Args[d.factor]] {
			return nil
		}
		chain = append(chain, d)
	}
	return chain
}

// dot reads a sum of which a factor is a word of fields of which one is shifted down.
func (f *fielder) dot(in program.Instr) (fieldDot, bool) {
	for k := 2; k >= 1; k-- {
		of, word := f.wordOf(in.Args[k])
		if fields, up := lifted(f.fieldsOf(of)); up > 0 {
			return fieldDot{in, of, fields, up, word, k}, true
		}
	}
	return fieldDot{}, false
}

// lifted moves fields up so far that most of those that were shifted are where they lie, and
// none leaves its byte; by 0, if that saves no shift.
func lifted(fields []field) (moved []field, up int) {
	shifts := func(up int) (n int) {
		for _, f := range fields {
			if f.up+up != 0 {
				n++
			}
		}
		return n
	}
	for _, f := range fields {
		out := func(g field) bool { return shifted(shifted(g.bits, g.up-f.up), f.up-g.up) != g.bits }
		if f.up < 0 && shifts(-f.up) < shifts(up) && !slices.ContainsFunc(fields, out) {
			up = -f.up
		}
	}
	for _, f := range fields {
		f.up += up
		moved = append(moved, f)
	}
	return moved, up
}

// wordOf is the vector of which a factor is a word.
func (f *fielder) wordOf(v *program.Value) (of *program.Value, word int) {
	if in := f.makers[v]; in != nil {
		if word, ok := in.TakesWord(); ok {
			return in.Args[0], word
		}
	}
	return v, 0
}

// sum writes a chain with its fields in place.
func (f *fielder) sum(chain []fieldDot) *program.Value {
	first := chain[0].in.Args[0]
	total := f.Zero(first.Type)
	for _, d := range chain {
		args := [2]*program.Value{d.in.Args[1], d.in.Args[2]}
		args[d.factor-1] = f.Slice(f.bytes(d), 4*d.word, 4)
		total = f.Dot4(total, args[0], args[1])
	}
	total = f.Alu(ir.OpShr, total, f.Int(total.Type, int64(chain[0].up)))
	return f.Add(total, first)
}

// bytes are fields where one of them lies, joined.
func (f *fielder) bytes(d fieldDot) *program.Value {
	if f.placed[d.of] == nil {
		f.placed[d.of] = f.join(d.fields)
	}
	return f.placed[d.of]
}

// join writes fields as a value.
func (f *fielder) join(fields []field) (all *program.Value) {
	for _, g := range fields {
		v := g.of
		switch {
		case g.up > 0:
			v = f.Alu(ir.OpShl, v, f.Int(v.Type, int64(g.up)))
		case g.up < 0:
			v = f.Alu(ir.OpShr, v, f.Int(v.Type, int64(-g.up)))
		}
		v = f.Alu(ir.OpAnd, v, f.Int(v.Type, int64(shifted(g.bits, g.up))))
		if all != nil {
			v = f.Alu(ir.OpOr, all, v)
		}
		all = v
	}
	return all
}
