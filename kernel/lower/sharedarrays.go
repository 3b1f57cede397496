package lower

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Stages that read stages, the steps of a network over a row for example, take turns in shared
// memory: once all that read a stage have been filled and the threads have met, its array is free
// for a later one. Stores may read any stage, at any time.

// sharedArrays are those of stages.
type sharedArrays struct {
	*lowering
	elements map[*program.Value]int64
	readers  map[*ir.UOp]int  // of each stage, that are still to be filled
	idle     []*program.Value // of stages that nothing is to read any more
}

// take is an idle array, or a new one.
func (l *sharedArrays) take(elem ir.DType, count int64) *program.Value {
	for k, array := range l.idle {
		if array.Type.Elem == elem && l.elements[array] == count {
			l.idle = slices.Delete(l.idle, k, k+1)
			return array
		}
	}
	array := l.block.newShared(elem, count)
	l.elements[array] = count
	return array
}

// filled notes that a stage has been filled. What it was the last to read leaves its array, if
// others may have it.
func (l *sharedArrays) filled(stage *ir.UOp, arrayOf func(read *ir.UOp) *program.Value) {
	if l.readers == nil {
		l.readers = l.countReaders()
	}
	for _, read := range stagesReadBy(stage.Src[0]) {
		if l.readers[read]--; l.readers[read] > 0 {
			continue
		}
		if array := arrayOf(read); array != nil {
			l.idle = append(l.idle, array)
		}
	}
}

// countReaders counts for each stage what reads it: stages, and the stores together.
func (l *sharedArrays) countReaders() map[*ir.UOp]int {
	count := make(map[*ir.UOp]int)
	note := func(root *ir.UOp) {
		for _, read := range stagesReadBy(root) {
			count[read]++
		}
	}
	note(l.Sink)
	for _, u := range lists.Filter(ir.Toposort(l.Sink), func(u *ir.UOp) bool { return u.Op == ir.OpStage }) {
		note(u.Src[0])
	}
	return count
}

// stagesReadBy are the stages that an expression reads outside of others.
func stagesReadBy(root *ir.UOp) (stages []*ir.UOp) {
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		if u.Op != ir.OpStage {
			return u.Src
		}
		stages = append(stages, u)
		return nil
	}, root)
	return stages
}
