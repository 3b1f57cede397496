package lower

import (
	"tgc/ir"
	"tgc/kernel/shape"
)

// fillPanels fills all panels of the scope at depth d between two barriers.
func (l *stager) fillPanels(d int) {
	s := l.scopes.stack[d]
	l.scopes.in(d, func() {
		if l.block.repeats() {
			l.block.barrier()
		}
		for _, stage := range ir.Toposort(l.Sink) {
			if stage.Op != ir.OpStage || !shape.IsSharedTile(stage) {
				continue
			}
			if at, ok := l.scopes.depthOf(l.free.Of(stage)); !ok || at != d {
				continue
			}
			k := l.scopes.key(stage, l.scopes.startCoords())
			array := l.arrayOf(stage, k)
			l.fillLoops(stage, stage.Src[1:], []coords{l.scopes.startCoords()}, func(at coords) { l.fillPoint(stage, array, at) })
			s.memo[k] = val{v: array, depth: d}
		}
		l.block.barrier()
	})
}
