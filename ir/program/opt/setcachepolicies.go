package opt

import "tgc/ir/program"

// streamBytes is the width from which on a load of a weight leaves nothing in the
// first level of cache: narrower ones share their sectors with others.
const streamBytes = 16

// setCachePolicies tells the loads of constant weights what the caches need not do.
func setCachePolicies(p *program.Program) {
	w := weightsOf(p)
	w.body.Each(func(in *program.Instr) {
		if in.Op != program.Load && in.Op != program.Gather || !w.isConstantWeight(in.Args[0]) {
			return
		}
		in.Cache = program.CacheConst
		if in.Op == program.Load && in.Result.Type.Bytes() >= streamBytes {
			in.Cache = program.CacheStream
		}
	})
}
