package lower

import (
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// foldMember accumulates a MAX, MIN or MUL in an open loop. Lanes stay lanes until
// the loop is done, and copies go round over several accumulators; both are the
// same in any order, but for the rounding of products (class A).
func (l *reducer) foldMember(open *program.Loop, u *ir.UOp, at coords, home *scope, key memoKey) []carry {
	op := u.Arg.(ir.ReduceArg).Op
	var over analyse.RangeSet
	parts := l.foldParts(u.Src[0], op, at, &over)
	var subAxes []int
	for _, x := range parts {
		subAxes = unionSubAxes(subAxes, x.subAxes)
	}
	subAxes = unionSubAxes(subAxes, over.List())
	init := l.splat(l.exprs.constant(l.Arena.ReduceIdentity(u, 0)), l.exprs.laneCount(subAxes))
	chains := min(len(parts), l.Options.Program.Of(program.Chains))
	accs := lists.Make(chains, func(int) *program.Value { return l.b.Carry(open, init) })
	for k, x := range parts {
		// The accumulator second: what a renderer asks of the first operand alone
		// (its sign) is then no part of the chain.
		accs[k%chains] = l.b.Alu(op, l.exprs.expand(x, subAxes), accs[k%chains])
	}
	d := l.scopes.top() - 1
	return l.together(op, accs, func(total *program.Value) {
		out := val{v: total, subAxes: subAxes, depth: d}
		if !over.Empty() {
			out = l.exprs.foldLanes(op, out, over)
		}
		home.memo[key] = out
	})
}

// foldParts are the values of an iteration: one for each copy of the reduces of the
// same op inside, whose lanes it adds to over. On a GPU lanes are words of one
// thread and folded at once.
func (l *reducer) foldParts(u *ir.UOp, op ir.Op, at coords, over *analyse.RangeSet) []val {
	if u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op == op && !l.block.onGPU() {
		if role := l.Roles[l.free.Index.Of(u.ReduceRange())]; role == plan.Lane || role == plan.Unroll {
			return l.partsOf(u, op, at, over)
		}
	}
	return []val{l.exprs.settle(l.exprs.lower(u, at))}
}

// partsOf are the values that a reduce over lanes or copies folds.
func (l *reducer) partsOf(u *ir.UOp, op ir.Op, at coords, over *analyse.RangeSet) (out []val) {
	i := l.free.Index.Of(u.ReduceRange())
	if l.Roles[i] == plan.Lane {
		over.Add(i)
		return l.foldParts(u.Src[0], op, at.with(i, laneCoord), over)
	}
	for c := range int32(l.extent[i]) {
		out = append(out, l.foldParts(u.Src[0], op, at.with(i, c), over)...)
	}
	return out
}
