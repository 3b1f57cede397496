package shape

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// Chains of sums around matrix instructions. Rule R3 takes the scales of a
// packed format out of its inner sums, so that a product is a chain of sums, each
// a factor times the next one:
//
//	sum_b d * sum_g s * sum_j x*q
//
// A loop for each sum has accumulators for each, and with tiles of outputs those
// are the registers that decide how large a tile can be. A tile of 16 points takes
// its factors as cheaply inside as outside, so that the chain becomes one loop
// over all its serial sub-axes, with copies inside and threads around:
//
//	sum_threads sum_(b,g) sum_copies (d*s) * sum_j x*q
//
// It re-associates (class A), as MMA does.

// chain is a nest of float sums around a value with a sum of MMA.
type chain struct {
	serial, copies, threads []*ir.UOp // ranges, outer before inner
	factors                 []*ir.UOp
	core                    *ir.UOp
}

// collapseSums rewrites the chains of a kernel. All sub-axes have roles.
func collapseSums(st *State, sink *ir.UOp) *ir.UOp {
	f := &flattener{State: st, holds: make(map[*ir.UOp]bool), merged: make(map[string]*mergedRange)}
	if st.Tile == nil {
		free, err := analyse.NewFreeSets(analyse.RangesIn(sink))
		if err != nil {
			return sink // order-ranges reports it
		}
		f.free = free
	}
	nodes := ir.Toposort(sink)
	matrices := make(map[*ir.UOp]bool)
	for _, u := range nodes {
		if u.Op == ir.OpField {
			matrices[u.Src[0]] = true
		}
	}
	f.matrices = len(matrices)
	f.hold(nodes, func(u *ir.UOp) bool {
		return st.roles[u.ReduceRange()] == plan.Matrix || st.Tile == nil && u.DType == ir.F32
	})
	if st.Tile != nil { // sums beside those of the instruction: of group sums times minima
		over := make(map[*ir.UOp]bool)
		for _, u := range nodes {
			if u.Op == ir.OpReduce && f.holds[u] {
				over[u.ReduceRange()] = true
			}
		}
		f.hold(nodes, func(u *ir.UOp) bool { return over[u.ReduceRange()] })
	}
	inner := make(map[*ir.UOp]bool) // sums that belong to the chain of another
	chains := make(map[*ir.UOp]*chain)
	for _, u := range slices.Backward(nodes) {
		if f.isLink(u) && !inner[u] {
			chains[u] = f.chainAt(u, inner)
		}
	}
	r := ir.Rebuild{Arena: st.Arena}
	r.Visit = func(u *ir.UOp, src []*ir.UOp) *ir.UOp {
		if c := chains[u]; c != nil {
			return f.flat(c, &r)
		}
		return f.joined(u, src, chains)
	}
	return st.simp.Do(r.Do(sink))
}

type flattener struct {
	*State
	free   *analyse.FreeSets // of a CPU's kernel, whose lanes are rows
	holds  map[*ir.UOp]bool  // a sum of MMA, or one beside it
	merged map[string]*mergedRange

	matrices int // packed ones that the kernel reads
}

// hold notes the values that have a sum of a kind in them.
func (f *flattener) hold(nodes []*ir.UOp, kind func(sum *ir.UOp) bool) {
	for _, u := range nodes {
		f.holds[u] = f.holds[u] || u.Op == ir.OpReduce && kind(u) || slices.ContainsFunc(u.Src, func(s *ir.UOp) bool { return f.holds[s] })
	}
}

// mergedRange is serial ranges in one loop.
type mergedRange struct {
	rng  *ir.UOp
	with map[*ir.UOp]*ir.UOp
}

// isLink reports a sum that a chain may have.
func (f *flattener) isLink(u *ir.UOp) bool {
	if !f.holds[u] || !analyse.IsFloatSum(u) {
		return false
	}
	switch r := u.ReduceRange(); f.roles[r] {
	case plan.Tiled:
		return false
	case plan.Serial:
		_, constant := r.Src[0].Int()
		return constant
	case plan.Unroll, plan.Group, plan.Warp:
		return true
	}
	return false
}

// chainAt follows a chain from its outermost sum.
func (f *flattener) chainAt(u *ir.UOp, inner map[*ir.UOp]bool) *chain {
	c := &chain{core: u}
	for f.isLink(c.core) {
		inner[c.core] = true
		r := c.core.ReduceRange()
		switch f.roles[r] {
		case plan.Serial:
			c.serial = append(c.serial, r)
		case plan.Unroll:
			c.copies = append(c.copies, r)
		default:
			c.threads = append(c.threads, r)
		}
		c.core = c.core.Src[0]
		for _, factor := range analyse.Factors(c.core) {
			if f.isLink(factor) && !inner[factor] {
				others := slices.DeleteFunc(analyse.Factors(c.core), func(x *ir.UOp) bool { return x == factor })
				c.factors = append(c.factors, others...)
				c.core = factor
				break
			}
		}
	}
	return c
}

// flat is a chain as one sum over threads, serial points and copies.
func (f *flattener) flat(c *chain, rebuilt *ir.Rebuild) *ir.UOp {
	a := f.Arena
	var ofRows, ofColumns, core []*ir.UOp
	factors := c.factors
	for _, x := range analyse.Factors(c.core) {
		if f.holds[x] {
			core = append(core, rebuilt.Of(x))
		} else {
			factors = append(factors, x)
		}
	}
	for _, x := range factors {
		if f.ofColumns(x) {
			ofColumns = append(ofColumns, rebuilt.Of(x))
		} else {
			ofRows = append(ofRows, rebuilt.Of(x))
		}
	}
	rows, columns := analyse.Product(a, ofRows), analyse.Product(a, ofColumns)
	body, copies := analyse.Product(a, core), c.copies
	if body == nil { // a sum beside those of the instruction: of group sums times minima
		if body, rows = rows, nil; body == nil {
			body, columns = columns, nil
		}
	}
	first, then := rows, columns
	if f.Tile != nil && !f.ofRows(body) { // a sum of columns is scaled once for all rows
		first, then = columns, rows
	}
	for _, sides := range [][]*ir.UOp{{first, then}, {then}} {
		body, copies = f.inside(body, copies, sides)
		if side := sides[0]; side != nil {
			body = a.Mul(side, body)
		}
	}
	serial := c.serial
	if len(serial) > 1 || len(serial) == 1 && f.Tile == nil { // one loop, of each matrix its own
		m := f.merge(serial, f.matrixOf(c))
		body, serial = a.Substitute(body, m.with), []*ir.UOp{m.rng}
	}
	return sumOver(a, body, slices.Concat(c.threads, serial, copies))
}

// joined is a difference of two chains over the same loop as a sum of differences, which takes one
// accumulator where they take two.
func (f *flattener) joined(u *ir.UOp, src []*ir.UOp, chains map[*ir.UOp]*chain) *ir.UOp {
	if u.Op != ir.OpSub || chains[u.Src[0]] == nil || chains[u.Src[1]] == nil {
		return nil
	}
	x, y := src[0], src[1]
	var loops []*ir.UOp
	for analyse.IsFloatSum(x) && analyse.IsFloatSum(y) && x.ReduceRange() == y.ReduceRange() {
		loops = append(loops, x.ReduceRange())
		x, y = x.Src[0], y.Src[0]
	}
	if loops == nil {
		return nil
	}
	return sumOver(f.Arena, f.Arena.Sub(x, y), loops)
}

// inside sums over the copies on which no factor depends: they are added before
// they are multiplied. It returns the copies that are left.
func (f *flattener) inside(body *ir.UOp, copies, factors []*ir.UOp) (*ir.UOp, []*ir.UOp) {
	var left []*ir.UOp
	for k := len(copies) - 1; k >= 0; k-- {
		if r := copies[k]; slices.ContainsFunc(factors, func(x *ir.UOp) bool { return x != nil && analyse.Uses(x, r) }) {
			left = append([]*ir.UOp{r}, left...)
		} else {
			body = f.Arena.Reduce(ir.OpAdd, body, r)
		}
	}
	return body, left
}

// ofColumns reports a factor that depends on the tile's columns.
func (f *flattener) ofColumns(u *ir.UOp) bool {
	if f.Tile == nil {
		return !slices.ContainsFunc(f.free.Of(u).List(), func(i int) bool { return f.roles[f.free.Ranges[i]] == plan.Lane })
	}
	return analyse.Any(u, func(x *ir.UOp) bool { return x == f.Tile.ColumnLane || x == f.Tile.ColumnCopy })
}

// ofRows reports a value that depends on the tile's rows.
func (f *flattener) ofRows(u *ir.UOp) bool {
	return analyse.Any(u, func(x *ir.UOp) bool { return x == f.Tile.RowLane || x == f.Tile.RowCopy })
}

// matrixOf names the packed matrix that a chain reads, on a CPU whose registers do not hold the sums of
// all matrices: each has a loop of its own. In one loop they read the same activations.
func (f *flattener) matrixOf(c *chain) string {
	if f.Tile != nil || f.sumsOf(c)*f.matrices <= plan.TileSums(f.Desc) {
		return ""
	}
	for _, u := range ir.Toposort(append(slices.Clone(c.factors), c.core)...) {
		if u.Op == ir.OpField {
			return fmt.Sprint("p", u.Src[0].Arg.(ir.ParamArg).Slot)
		}
	}
	return ""
}

// sumsOf is how many sums of a chain are in registers at a time.
func (f *flattener) sumsOf(c *chain) int {
	sums := 1
	for _, i := range f.free.Of(c.core).List() {
		if r := f.free.Ranges[i]; f.roles[r] == plan.Unroll && !slices.Contains(c.copies, r) {
			n, _ := r.Src[0].Int()
			sums *= int(max(n, 1))
		}
	}
	return sums
}

// merge is one range in place of several; chains over the same ranges of one matrix share it,
// and so their loop.
func (f *flattener) merge(serial []*ir.UOp, matrix string) *mergedRange {
	key, points := matrix, int64(1)
	for _, r := range serial {
		n, _ := r.Src[0].Int()
		key, points = fmt.Sprintf("%s %d", key, r.Arg.(ir.RangeArg).ID), points*n
	}
	if m := f.merged[key]; m != nil {
		return m
	}
	a := f.Arena
	m := &mergedRange{rng: f.newRange(a.Index(points)), with: make(map[*ir.UOp]*ir.UOp)}
	f.place(m.rng, plan.Serial, f.order[serial[0]])
	for _, r := range serial {
		n, _ := r.Src[0].Int()
		points /= n
		m.with[r] = a.Mod(a.Div(m.rng, a.Index(points)), r.Src[0])
	}
	f.merged[key] = m
	return m
}
