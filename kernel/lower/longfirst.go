package lower

import "tgc/ir/program"

// longFirst numbers the work units of a range towards whose end loops are longer.
// A GPU starts the last ones first: while these still run, short ones fill the
// multiprocessors that are free. A worker of a CPU has neighbouring units: each
// short one is followed by a long one, so that all workers have equally much.
func (l *lowering) longFirst(i int, x *program.Value) *program.Value {
	if !l.Rising.Has(i) || l.Options.Program.Is(program.Units, "plain") {
		return x
	}
	last := l.b.Index(l.extent[i] - 1)
	if l.block.onGPU() {
		return l.b.Sub(last, x)
	}
	half := l.exprs.indexDiv(x, l.b.Index(2))
	return l.b.Where(l.b.Lt(l.exprs.indexMod(x, l.b.Index(2)), l.b.Index(1)), half, l.b.Sub(last, half))
}
