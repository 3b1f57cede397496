package heuristic

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/kernel/plan"
)

// Rows shorter than registers: where each goes on in the next one, lanes along both, as many rows as fill
// registers, are read and stored as one run, and what is one element a row is read once and spread. One Zen 4 core,
// a million rows of 3 floats, us: less the largest of a row and exponential 8867 one after the other, 1052 so; divided
// by the sum 3370, 1137; sums of columns 2441, 905, and with two rows at a time 529.

// Registers that lanes of several rows fill, at least, and the part of all that they may take.
const (
	joinedLeast = 2
	joinedMost  = 4
)

// joined is how many points of one axis are lanes beside all of another, inner one; 0: they cannot be.
func (a *analysis) joined(outer, inner int) int64 {
	register, row := lanesOf(a.desc), a.size(inner)
	rows := register / ir.GCD(row, register)
	for rows*row < joinedLeast*register {
		rows *= 2
	}
	if !a.constant(outer) || !a.constant(inner) || !a.laneSafe(outer) || !a.laneSafe(inner) || row >= 2*register || row == register ||
		rows == 1 || rows > a.size(outer) || rows*row > register*int64(a.desc.VectorRegs)/joinedMost {
		return 0
	}
	if slices.ContainsFunc(a.order, func(u *ir.UOp) bool { return !a.goesOn(u, outer, inner) }) {
		return 0
	}
	return rows
}

// takeJoined takes those lanes, and says how many points of the outer axis have them.
func (p *planner) takeJoined(outer, inner int) int64 {
	rows := p.joined(outer, inner)
	if rows > 0 {
		p.split(plan.VECTOR, outer, rows)
		p.split(plan.VECTOR, inner, p.size(inner))
		p.done[outer], p.done[inner] = true, true
	}
	return rows
}

// longerStores are the store axes of more than one point.
func (a *analysis) longerStores() []int {
	return lists.Filter(a.axesOf(plan.StoreAxis), func(i int) bool { return a.size(i) > 1 })
}

// goesOn reports that what a node reads or stores along one axis goes on at the next point of another, outer one.
func (a *analysis) goesOn(u *ir.UOp, outer, inner int) bool {
	switch {
	case u.Op == ir.OpField:
		return a.free.Of(u).Meet(setOf([]int{outer, inner})).Empty()
	case u.Op == ir.OpLoad && u.Src[0].Op == ir.OpTable, u.Op != ir.OpLoad && u.Op != ir.OpStore:
		return true
	}
	next, within := int64(1), a.dependsByIndex(u, inner)
	if within {
		next = a.size(inner)
	}
	return (!within || a.stride(u, inner) == 1) && (!a.dependsByIndex(u, outer) || a.stride(u, outer) == next)
}
