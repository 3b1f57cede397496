package lower

import (
	"slices"
	"strconv"
	"strings"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// A tuple REDUCE folds N components with one lambda. Component j of the
// accumulator depends on the ranges of those element components that its
// lambda reads; ranges that only some components have are privatised: the
// component is a vector or several copies over them, while the others are
// computed once.

func (l *lowerer) closure(u *ir.UOp, comps []int) []int {
	var out []int
	for _, c := range comps {
		for _, o := range ir.ComponentsOf(u, c) {
			if !slices.Contains(out, o) {
				out = append(out, o)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (l *lowerer) componentsWith(u *ir.UOp, comp int, more []int) []int {
	return l.closure(u, append([]int{comp}, more...))
}

// lowerProj gives one component of a tuple.
func (l *lowerer) lowerProj(u *ir.UOp, at coords) val {
	tuple, c := u.Src[0], int(u.Arg.(ir.IntArg))
	i := l.free.Index.Of(tuple.ReduceRange())
	if l.Roles[i] == plan.Serial || l.Roles[i] == plan.Grid {
		l.runLoop(i, tuple, c)
		v, ok := l.stack[l.top()].memo[l.key(u, at)]
		if !ok {
			fail("a tuple component has no result at its coordinates")
		}
		return v
	}
	if l.threads.Has(i) {
		return l.threadProj(u, tuple, c, i, at)
	}
	return l.unrolledProj(tuple, c, i, at)
}

// unrolledProj combines the elements of a tuple over copies or lanes in a tree.
func (l *lowerer) unrolledProj(tuple *ir.UOp, c, i int, at coords) val {
	p := plan.PartsOf(tuple)
	comps := ir.ComponentsOf(tuple, c)
	n := int(l.extent[i])
	elements := make([]map[int]val, n)
	for k := range elements {
		elements[k] = make(map[int]val)
	}
	for _, o := range comps {
		for k := range n {
			if l.Roles[i] == plan.Unroll {
				elements[k][o] = l.settle(l.lower(p.Values[o], at.with(i, int32(k))))
				continue
			}
			x := l.settle(l.lower(p.Values[o], at.with(i, laneCoord)))
			elements[k][o] = l.pickLane(x, i, k)
		}
	}
	for len(elements) > 1 {
		half := (len(elements) + 1) / 2
		for k := 0; k+half < len(elements); k++ {
			elements[k] = l.combine(p, comps, elements[k], elements[k+half])
		}
		elements = elements[:half]
	}
	return elements[0][c]
}

// pickLane is x at coordinate k of digit i.
func (l *lowerer) pickLane(x val, i, k int) val {
	if !hasDigit(x.digits, i) {
		return x
	}
	var rest []int
	for _, d := range x.digits {
		if d != i {
			rest = append(rest, d)
		}
	}
	if len(rest) == 0 {
		return val{v: l.b.Extract(x.v, k), depth: l.top()}
	}
	mask := make([]int, l.laneCount(rest))
	for lane := range mask {
		point := l.lanePoint(rest, lane)
		at := 0
		for _, d := range x.digits {
			c := int64(k)
			if d != i {
				c = point[slices.Index(rest, d)]
			}
			at = at*int(l.extent[d]) + int(c)
		}
		mask[lane] = at
	}
	return val{v: l.b.Shuffle(x.v, x.v, mask...), digits: rest, depth: l.top()}
}

// combine applies the lambda to two tuples.
func (l *lowerer) combine(p plan.TupleParts, comps []int, x, y map[int]val) map[int]val {
	out := make(map[int]val)
	e := l.newLambda(p.N)
	for _, c := range comps {
		out[c] = e.eval(p.Lambda[c], func(k int) val {
			if k < p.N {
				return x[k]
			}
			return y[k-p.N]
		})
	}
	return out
}

// lambda evaluates combine expressions on values; equal nodes on equal
// arguments are computed once, so what does not depend on privatised ranges
// (the exp of a softmax) is shared by all copies.
type lambda struct {
	l    *lowerer
	n    int
	uses map[*ir.UOp][]int
	memo map[string]val
	ids  map[*ir.UOp]int
	fma  bool // products are rounded once, with the sum that they feed
}

func (l *lowerer) newLambda(n int) *lambda {
	return &lambda{l: l, n: n, uses: make(map[*ir.UOp][]int), memo: make(map[string]val), ids: make(map[*ir.UOp]int)}
}

func (e *lambda) eval(u *ir.UOp, arg func(int) val) val {
	switch u.Op {
	case ir.OpArg:
		return arg(int(u.Arg.(ir.IntArg)))
	case ir.OpConst, ir.OpVar:
		return e.l.lower(u, e.l.startCoords())
	}
	key := e.key(u, arg)
	if v, ok := e.memo[key]; ok {
		return v
	}
	v, ok := e.contract(u, arg)
	if !ok {
		args := make([]val, len(u.Src))
		for i, s := range u.Src {
			args[i] = e.eval(s, arg)
		}
		v = e.l.alu(u.Op, u.DType, args...)
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
	digits := unionDigits(unionDigits(x.digits, y.digits), z.digits)
	return val{v: e.l.b.Fma(e.l.expand(y, digits), e.l.expand(z, digits), e.l.expand(x, digits)), digits: digits, depth: e.l.top()}, true
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
func (l *lowerer) tupleMember(open *program.Loop, m member, i int) []carry {
	p := plan.PartsOf(m.node)
	outside := l.stack[:l.top()]
	d := len(outside) - 1
	accs := make(map[memoKey]val)
	at := make(map[int][]coords)
	for _, c := range m.comps {
		node := l.Arena.Proj(m.node, c)
		free := l.free.Of(node)
		at[c] = l.combos(free)
		digits := l.lanes.Meet(free).List()
		for _, point := range at[c] {
			init := l.settle(l.lower(p.Identities[c], point))
			acc := l.b.Carry(open, l.expand(init, digits))
			accs[l.key(node, point)] = val{v: acc, digits: digits, depth: l.top()}
		}
	}
	var carries []carry
	e := l.newLambda(p.N)
	e.fma = l.FMA
	for _, c := range m.comps {
		node := l.Arena.Proj(m.node, c)
		for _, point := range at[c] {
			key := l.key(node, point)
			next := e.eval(p.Lambda[c], func(k int) val {
				if k < p.N {
					return accs[l.key(l.Arena.Proj(m.node, k), point)]
				}
				return l.settle(l.lower(p.Values[k-p.N], point))
			})
			digits := accs[key].digits
			carries = append(carries, carry{l.expand(next, digits), func(r *program.Value) {
				if depth, _ := l.depthOf(l.free.Of(node)); depth == d {
					outside[d].memo[key] = val{v: r, digits: digits, depth: d}
				}
			}})
		}
	}
	return carries
}
