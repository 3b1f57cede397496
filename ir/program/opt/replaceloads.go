package opt

import "tgc/ir/program"

// Loads of a block that make way for fewer ones.

// replacements are what writes other instructions in place of loads: all but the last, which has the load's result, is emitted.
type replacements map[*program.Value]func(in program.Instr) program.Instr

// loadWriter writes a program anew.
type loadWriter struct {
	*program.Builder
	addressFinder
	find     func(w *loadWriter, instrs []program.Instr) replacements
	replaced bool
}

// replaceLoads writes a program anew with what find puts in the place of the loads of each block.
func replaceLoads(p *program.Program, find func(w *loadWriter, instrs []program.Instr) replacements) {
	renumber(p)
	w := &loadWriter{Builder: program.Resume(p), addressFinder: addressesIn(p), find: find}
	w.block(p.Body)
	if w.replaced {
		w.Finish()
		dropUnreadIn(p.Body, p.Readers(), isPointer)
	}
}

// block writes a block and those in it anew.
func (w *loadWriter) block(b *program.Block) {
	instrs := b.Instrs
	replace := w.find(w, instrs)
	b.Instrs = make([]program.Instr, 0, len(instrs))
	for _, in := range instrs {
		for inner := range in.Blocks() {
			w.block(inner)
		}
		w.With(b, func() {
			if f := replace[in.Result]; f != nil {
				before := w.MakeFor(in.Result.Origin)
				in = f(in)
				w.MakeAgainFor(before)
				w.replaced = true
			}
			w.Emit(in)
		})
	}
}

// isPointer reports the arithmetic of a pointer.
func isPointer(in *program.Instr) bool {
	return in.Result != nil && in.Result.Type.Ptr && (in.Op == program.PtrAdd || in.Op == program.Alu)
}
