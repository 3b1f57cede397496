package lower

import (
	"tgc/kernel/shape"
)

import "tgc/ir"

// fillPanels fills all panels of the scope at depth d between two barriers.
func (l *lowerer) fillPanels(d int) {
	s := l.stack[d]
	l.in(d, func() {
		if l.repeats() {
			l.barrier()
		}
		for _, stage := range ir.Toposort(l.Sink) {
			if stage.Op != ir.OpStage || !shape.IsSharedTile(stage) {
				continue
			}
			if at, ok := l.depthOf(l.free.Of(stage)); !ok || at != d {
				continue
			}
			k := l.key(stage, l.startCoords())
			array := l.arrayOf(stage, k)
			l.fillLoops(stage, array, stage.Src[1:], l.startCoords())
			s.memo[k] = val{v: array, depth: d}
		}
		l.barrier()
	})
}
