package lower

import (
	"slices"
	"strconv"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// A tuple REDUCE folds N components with one lambda. Component j of the
// accumulator depends on the ranges of those element components that its
// lambda reads; ranges that only some components have are privatised: the
// component is a vector or several copies over them, while the others are
// computed once.

// tuples writes reduces of several components.
type tuples struct{ *lowering }

func (l *tuples) closure(u *ir.UOp, comps []int) []int {
	var out []int
	for _, c := range comps {
		out = lists.Union(out, ir.ComponentsOf(u, c)...)
	}
	slices.Sort(out)
	return out
}

// lowerProj gives one component of a tuple.
func (l *tuples) lowerProj(u *ir.UOp, at coords) val {
	tuple, c := u.Src[0], int(u.Arg.(ir.IntArg))
	i := l.free.Index.Of(tuple.ReduceRange())
	if l.Roles[i] == plan.Serial || l.Roles[i] == plan.Grid {
		return l.loops.looped(tuple, c, u, at)
	}
	if l.block.threads.Has(i) {
		return l.folds.threadProj(u, tuple, c, i, at)
	}
	return l.unrolledProj(tuple, c, i, at)
}

// unrolledProj combines the elements of a tuple over copies or lanes in a tree.
func (l *tuples) unrolledProj(tuple *ir.UOp, c, i int, at coords) val {
	comps := ir.ComponentsOf(tuple, c)
	n := int(l.extent[i])
	elements := lists.Make(n, func(int) map[int]val { return make(map[int]val) })
	for _, o := range comps {
		for k := range n {
			if l.Roles[i] == plan.Unroll {
				elements[k][o] = l.exprs.settle(l.exprs.lower(tuple.ReduceValues()[o], at.with(i, int32(k))))
				continue
			}
			x := l.exprs.settle(l.exprs.lower(tuple.ReduceValues()[o], at.with(i, laneCoord)))
			elements[k][o] = l.pickLane(x, i, k)
		}
	}
	for len(elements) > 1 {
		half := (len(elements) + 1) / 2
		for k := 0; k+half < len(elements); k++ {
			elements[k] = l.combine(tuple, comps, elements[k], elements[k+half])
		}
		elements = elements[:half]
	}
	return elements[0][c]
}

// pickLane is x at coordinate k of sub-axis i.
func (l *tuples) pickLane(x val, i, k int) val {
	at := slices.Index(x.subAxes, i)
	if at < 0 {
		return x
	}
	rest := slices.Delete(slices.Clone(x.subAxes), at, at+1)
	if len(rest) == 0 {
		return val{v: l.b.Extract(x.v, k), depth: l.scopes.top()}
	}
	mask := l.exprs.pick(x.subAxes, rest, l.scopes.startCoords().with(i, int32(k)))
	return val{v: l.b.Shuffle(x.v, x.v, mask...), subAxes: rest, depth: l.scopes.top()}
}

// combine applies the lambda to two tuples.
func (l *tuples) combine(p *ir.UOp, comps []int, x, y map[int]val) map[int]val {
	out := make(map[int]val)
	e, n := l.newLambda(), p.Arg.(ir.ReduceArg).N
	for _, c := range comps {
		out[c] = e.eval(p.ReduceCombine()[c], func(k int) val {
			if k < n {
				return x[k]
			}
			return y[k-n]
		})
	}
	return out
}

// lambda evaluates combine expressions on values; equal nodes on equal
// arguments are computed once, so what does not depend on privatised ranges
// (the exp of a softmax) is shared by all copies.
type lambda struct {
	l    *lowering
	uses map[*ir.UOp][]int
	memo map[string]val
	ids  map[*ir.UOp]int
	fma  bool // products are rounded once, with the sum that they feed
	// shares: what exponentials are of is at most 0, and code is to see it.
	shares bool
}

func (l *tuples) newLambda() *lambda {
	return &lambda{l: l.lowering, uses: make(map[*ir.UOp][]int), memo: make(map[string]val), ids: make(map[*ir.UOp]int)}
}

func (e *lambda) eval(u *ir.UOp, arg func(int) val) val {
	switch u.Op {
	case ir.OpArg:
		return arg(int(u.Arg.(ir.IntArg)))
	case ir.OpConst, ir.OpVar:
		return e.l.exprs.lower(u, e.l.scopes.startCoords())
	}
	key := e.key(u, arg)
	if v, ok := e.memo[key]; ok {
		return v
	}
	v, ok := e.contract(u, arg)
	if !ok {
		args := lists.Map(u.Src, func(s *ir.UOp) val { return e.eval(s, arg) })
		if u.Op == ir.OpExp2 && e.shares {
			zero := e.l.exprs.lower(e.l.Arena.Const(u.DType, 0), e.l.scopes.startCoords())
			args[0] = e.l.exprs.alu(ir.OpMin, u.DType, args[0], zero)
		}
		v = e.l.exprs.alu(u.Op, u.DType, args...)
	}
	e.memo[key] = v
	return v
}

// contract makes x + y*z one instruction. Threads that combine what they hold do
// without: both of two threads have to get the same bits.
func (e *lambda) contract(u *ir.UOp, arg func(int) val) (val, bool) {
	if !e.fma || u.Op != ir.OpAdd || !u.DType.IsFloat() || u.Src[1].Op != ir.OpMul {
		return val{}, false
	}
	x, y, z := e.eval(u.Src[0], arg), e.eval(u.Src[1].Src[0], arg), e.eval(u.Src[1].Src[1], arg)
	subAxes := unionSubAxes(unionSubAxes(x.subAxes, y.subAxes), z.subAxes)
	return val{v: e.l.b.Fma(e.l.exprs.expand(y, subAxes), e.l.exprs.expand(z, subAxes), e.l.exprs.expand(x, subAxes)), subAxes: subAxes, depth: e.l.scopes.top()}, true
}

func (e *lambda) key(u *ir.UOp, arg func(int) val) string {
	uses, ok := e.uses[u]
	if !ok {
		for _, x := range ir.Toposort(u) {
			if x.Op == ir.OpArg {
				uses = append(uses, int(x.Arg.(ir.IntArg)))
			}
		}
		slices.Sort(uses)
		e.uses[u] = uses
		e.ids[u] = len(e.ids)
	}
	var s strings.Builder
	s.WriteString(strconv.Itoa(e.ids[u]))
	for _, k := range uses {
		s.WriteByte(' ')
		s.WriteString(strconv.Itoa(arg(k).v.ID))
	}
	return s.String()
}

// tupleMember accumulates the components of a tuple in an open loop.
func (l *tuples) tupleMember(open *program.Loop, m member) []carry {
	outside := l.scopes.stack[:l.scopes.top()]
	d := len(outside) - 1
	accs := make(map[memoKey]val)
	at := make(map[int][]coords)
	for _, c := range m.comps {
		node := l.Arena.Proj(m.node, c)
		free := l.free.Of(node)
		at[c] = l.loops.combos(free)
		subAxes := l.lanes.Meet(free).List()
		for _, point := range at[c] {
			init := l.exprs.settle(l.exprs.lower(m.node.ReduceIdentities()[c], point))
			acc := l.b.Carry(open, l.exprs.expand(init, subAxes))
			accs[l.scopes.key(node, point)] = val{v: acc, subAxes: subAxes, depth: l.scopes.top()}
		}
	}
	var carries []carry
	e, n := l.newLambda(), m.node.Arg.(ir.ReduceArg).N
	e.fma = l.Options.FMA
	e.shares = l.Tile != nil && l.Arena.MonoidOf(m.node).Rescales
	for _, c := range m.comps {
		node := l.Arena.Proj(m.node, c)
		for _, point := range at[c] {
			key := l.scopes.key(node, point)
			next := e.eval(m.node.ReduceCombine()[c], func(k int) val {
				if k < n {
					return accs[l.scopes.key(l.Arena.Proj(m.node, k), point)]
				}
				return l.exprs.settle(l.exprs.lower(m.node.ReduceValues()[k-n], point))
			})
			subAxes := accs[key].subAxes
			carries = append(carries, carry{l.exprs.expand(next, subAxes), func(r *program.Value) {
				if depth, _ := l.scopes.depthOf(l.free.Of(node)); depth == d {
					outside[d].memo[key] = val{v: r, subAxes: subAxes, depth: d}
				}
			}})
		}
	}
	return carries
}
