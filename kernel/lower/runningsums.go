package lower

import (
	"slices"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
)

// The sums of a loop on a CPU take turns: a term of each, then the next term of each.
// What sums have in common, a decoded weight that several tokens use or an activation
// that several rows use, is then needed for a few instructions and not for the whole
// body, which holds some hundreds where a block of weights is one iteration: thirty-two
// registers are enough. (ptxas orders the instructions of a loop by itself.)

// runningSum is one copy of a sum, while its loop is open.
type runningSum struct {
	node   *ir.UOp
	at     coords
	points []sumPoint
	parts  []*partialSum
}

// partialSum has the terms over the same lanes. With contraction allowed they go round
// over several accumulators, so that the latency of one addition does not bound the loop.
type partialSum struct {
	subAxes []int
	pend    analyse.RangeSet
	accs    []*program.Value
	carries []int // their places among those of the loop
	terms   int
}

// runningSums accumulates sums in an open loop.
func (l *reducer) runningSums(open *program.Loop, nodes []*ir.UOp) []carry {
	sums := l.takeTurns(nodes)
	var carries []carry
	for k, more := 0, true; more; k++ {
		more = false
		for _, s := range sums {
			if k >= len(s.points) {
				continue
			}
			more = true
			p := s.points[k]
			for _, t := range l.terms(p.node, p.at, p.pend) {
				carries = l.addTerm(open, s, t, carries)
			}
		}
	}
	outside := l.scopes.stack[:l.scopes.top()]
	for _, s := range sums {
		l.finishSum(s, outside, carries)
	}
	return carries
}

// takeTurns lists the copies of sums, those at the same copy of all sums together.
func (l *reducer) takeTurns(nodes []*ir.UOp) (sums []*runningSum) {
	copies := make([][]coords, len(nodes))
	most := 0
	for k, u := range nodes {
		copies[k] = l.combos(l.free.Of(u))
		most = max(most, len(copies[k]))
	}
	for c := range most {
		for k, u := range nodes {
			if c < len(copies[k]) {
				at := copies[k][c]
				sums = append(sums, &runningSum{node: u, at: at, points: l.pointsOf(u.Src[0], at, analyse.RangeSet{}, nil)})
			}
		}
	}
	return sums
}

// addTerm adds a term to the part of a sum over its lanes.
func (l *reducer) addTerm(open *program.Loop, s *runningSum, t term, carries []carry) []carry {
	subAxes := unionSubAxes(l.termSubAxes(t), t.pend.Meet(l.lanes).List())
	var part *partialSum
	for _, p := range s.parts {
		if p.pend == t.pend && slices.Equal(p.subAxes, subAxes) {
			part = p
		}
	}
	if part == nil {
		part = &partialSum{subAxes: subAxes, pend: t.pend}
		s.parts = append(s.parts, part)
		lanes := l.exprs.laneCount(subAxes)
		zero := l.b.Zero(program.Vector(storedType(s.node.DType), lanes))
		for range l.chains(len(s.points), lanes) {
			part.carries = append(part.carries, len(carries))
			carries = append(carries, carry{})
			part.accs = append(part.accs, l.b.Carry(open, zero))
		}
	}
	acc := &part.accs[part.terms%len(part.accs)]
	*acc = l.accumulate(val{v: *acc, subAxes: subAxes}, t, subAxes).v
	part.terms++
	return carries
}

// finishSum says what the accumulators of a sum become when the loop is closed.
func (l *reducer) finishSum(s *runningSum, outside []*scope, carries []carry) {
	d := len(outside) - 1
	home, key := outside[d], l.scopes.key(s.node, s.at)
	var total val
	for k, part := range s.parts {
		for c, own := range l.together(ir.OpAdd, part.accs, func(all *program.Value) {
			sum := val{v: all, subAxes: part.subAxes, pend: part.pend, depth: d}
			if k == 0 {
				total = sum
			} else {
				total = l.exprs.alu(ir.OpAdd, s.node.DType, l.exprs.settle(total), l.exprs.settle(sum))
			}
			home.memo[key] = total
		}) {
			carries[part.carries[c]] = own
		}
	}
}
