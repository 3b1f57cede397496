package opt

import "tgc/ir/program"

// streamBytes is the width from which on a load of a weight leaves nothing in the
// first level of cache: narrower ones share their sectors with others.
const streamBytes = 16

// setCachePolicies tells the loads of constant weights what the caches need not do, or
// what the plan says.
func setCachePolicies(p *program.Program) {
	w := weightsOf(p)
	w.body.Each(func(in *program.Instr) {
		if in.Op != program.Load && in.Op != program.Gather {
			return
		}
		switch p := w.memory.Param(in.Args[0]); {
		case p == nil || !p.Constant:
		case p.Cache != program.CacheDefault:
			in.Cache = p.Cache
		case p.Early && in.Op == program.Load && in.Result.Type.Bytes() >= streamBytes:
			in.Cache = program.CacheStream
		case p.Early:
			in.Cache = program.CacheConst
		}
	})
}
