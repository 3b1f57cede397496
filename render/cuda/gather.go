package cuda

import (
	"tgc/ir"
	"tgc/ir/program"
)

// Accesses of elements that lie apart.

// element is the address of the i-th offset of a gather or scatter.
func (r *renderer) element(p, offsets *program.Value, i int) *address {
	a := r.values[p.ID].address
	size := int64(p.Type.Elem.Size())
	o := r.lane(offsets, i)
	if o.literal() {
		return a.plus(int64(o.bits) * size)
	}
	out := a.plus(0)
	out.base = r.scaled(a, p.Type.Space, o, size)
	return out
}

func (r *renderer) gather(in *program.Instr) {
	p, offsets, t := in.Args[0], in.Args[1], in.Result.Type
	if r.lookup(in) {
		return
	}
	how := r.loadPolicy(p, in.Cache)
	lanes := make([]operand, t.Lanes)
	for i := range lanes {
		lanes[i] = r.loaded(program.Scalar(t.Elem), how, r.element(p, offsets, i), in.Align)[0]
	}
	r.set(in.Result, lanes)
}

func (r *renderer) scatter(in *program.Instr) {
	p, offsets, v := in.Args[0], in.Args[1], in.Args[2]
	function := storeFunction(p, in.Cache)
	for i := range v.Type.Lanes {
		lane := &program.Value{ID: len(r.values), Type: program.Scalar(v.Type.Elem)}
		r.values = append(r.values, &held{lanes: []operand{r.lane(v, i)}})
		r.storeAt(function, lane, r.element(p, offsets, i), in.Align)
	}
}

// lookup is a gather from a table of up to 16 bytes by offsets that came from
// packed bytes: four lanes by byte permutes (the levels of 4-bit codebooks).
// The two lower bits of the selector's nibbles pick within a word, the next the
// word, the upper one which half of the table.
func (r *renderer) lookup(in *program.Instr) bool {
	p, offsets, t := in.Args[0], in.Args[1], in.Result.Type
	table, from := r.tables[p], r.origin[offsets]
	if table == nil || from == nil || t.Elem.Size() != 1 || t.Elem == ir.Bool || !isPacked(t) {
		return false
	}
	a := r.values[p.ID].address
	if len(table.Table) > 16 || a.off != 0 || a.base != r.values[table.Value.ID].address.base || r.values[from.ID].words == nil {
		return false
	}
	if b, ok := r.bounds[offsets]; !ok || b.Lo < 0 || b.Hi >= int64(len(table.Table)) {
		return false
	}
	var levels [4]operand
	for i := range levels {
		levels[i].t = uint32Type
	}
	for i := range len(table.Table) {
		levels[i/4].bits |= uint64(table.Table[i]) << (8 * (i % 4))
	}
	words := r.words(from)
	out := make([]operand, len(words))
	for i, w := range words {
		pairs := r.let(uint32Type, "%s | %s >> 4", w.text(), w.text())
		selector := r.permute(pairs, operand{}, 0x4420)
		within := r.let(uint32Type, "%s & 0x7777u", selector.text())
		out[i] = r.let(uint32Type, "__byte_perm(%s, %s, %s)", levels[0].text(), levels[1].text(), within.text())
		if len(table.Table) <= 8 {
			continue
		}
		high := r.let(uint32Type, "__byte_perm(%s, %s, %s)", levels[2].text(), levels[3].text(), within.text())
		choice := r.let(uint32Type, "(%s >> 1 & 0x4444u) | 0x3210u", selector.text())
		out[i] = r.let(uint32Type, "__byte_perm(%s, %s, %s)", out[i].text(), high.text(), choice.text())
	}
	r.setWords(in.Result, out)
	return true
}
