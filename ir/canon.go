package ir

import (
	"cmp"
	"math/bits"
	"slices"

	"tgc/internal/lists"
)

// Two kernels are the same up to names when they differ only in range ids,
// PARAM slots and the order of commutative operands, which follows from ids.
// Ranges and params are told apart by colours: hashes of extent (or extents
// and format) and, refined a few rounds, of everything that uses them. A
// colour depends on the structure alone, so isomorphic kernels get the same
// colours; operands are then visited in the order of their colours and ids
// given by first visit.

// refinements is the number of rounds in which colours take up their uses.
// Each round looks as far as the whole graph, up and down once.
const refinements = 3

// CanonicalHash is the same for kernels (or tensor graphs) that are equal up
// to range ids, PARAM slots and the order of commutative operands.
func CanonicalHash(root *UOp) uint64 { return newColouring(root, capacities{}).hash[root] }

// Canonicalise renames a kernel's ranges and slots by first use and puts
// commutative operands in order again. slots[new] is the old slot. Kernels
// that are equal up to names come out as one node. Kernels of one class (Class)
// get the same names: a plan of one is one of all.
func Canonicalise(a *Arena, root *UOp) (canonical *UOp, slots []int) {
	canonical, slots, _ = CanonicaliseNodes(a, root)
	return canonical, slots
}

// CanonicaliseNodes is Canonicalise that also says what each node became.
func CanonicaliseNodes(a *Arena, root *UOp) (canonical *UOp, slots []int, became map[*UOp]*UOp) {
	ranges, params := newColouring(root, capacitiesOf(Toposort(root))).number(root)
	c := &canonicaliser{arena: a, linear: NewLinearizer(a), done: make(map[*UOp]*UOp), ranges: ranges}
	c.slots = make(map[int]int)
	for _, p := range params {
		old := p.Arg.(ParamArg).Slot
		if _, ok := c.slots[old]; !ok {
			c.slots[old] = len(slots)
			slots = append(slots, old)
		}
	}
	for _, u := range Toposort(root) {
		c.done[u] = c.rename(u)
	}
	return c.done[root], slots, c.done
}

// colouring holds the structural hash of every node, names left out.
type colouring struct {
	order []*UOp          // Toposort
	leaf  map[*UOp]uint64 // colours of RANGEs and PARAMs
	hash  map[*UOp]uint64
	sum   map[*UOp]uint64 // of commutative chains: combined hash of the operands so far

	capacities // seen as they are in the kernel's class
}

func newColouring(root *UOp, capacities capacities) *colouring {
	c := &colouring{capacities: capacities, order: Toposort(root), leaf: make(map[*UOp]uint64), hash: make(map[*UOp]uint64), sum: make(map[*UOp]uint64)}
	c.hashAll()
	for range refinements {
		c.refine(root)
		c.hashAll()
	}
	return c
}

// mixWords hashes a sequence of words.
func mixWords(words ...uint64) uint64 {
	h := uint64(14695981039346656037)
	for _, w := range words {
		h = (h ^ w) * 1099511628211
		h ^= h >> 29
		h *= 0xbf58476d1ce4e5b9
		h ^= h >> 32
	}
	return h
}

// hashAll hashes bottom-up with the present colours of leaves.
func (c *colouring) hashAll() {
	for _, u := range c.order {
		c.hash[u] = c.hashOf(u)
	}
}

func (c *colouring) hashOf(u *UOp) uint64 {
	words := []uint64{uint64(u.Op)<<8 | uint64(u.DType), c.argHash(u)}
	switch {
	case isChain(u):
		// Order and grouping do not matter: add the operands' hashes up.
		var sum uint64
		for _, s := range u.Src {
			if inner, ok := c.sum[s]; ok && s.Op == u.Op && s.DType == u.DType {
				sum += inner
			} else {
				sum += mixWords(c.hash[s])
			}
		}
		c.sum[u] = sum
		return mixWords(words[0], sum)
	case isSymmetric(u):
		return mixWords(words[0], mixWords(c.hash[u.Src[0]])+mixWords(c.hash[u.Src[1]]))
	}
	for i, s := range u.Src {
		words = append(words, c.hash[s])
		if tops := c.extents[u]; tops != nil && tops[i] != noCapacity {
			words[len(words)-1] = c.hashOf(&UOp{Op: OpConst, DType: Idx, Arg: IntArg(tops[i])})
		}
	}
	return mixWords(words...)
}

// argHash is the hash of a node's arg without names; for ranges and params the
// colour.
func (c *colouring) argHash(u *UOp) uint64 {
	switch arg := u.Arg.(type) {
	case nil:
		return 0
	case RangeArg:
		return c.leaf[u]
	case ParamArg:
		probe := UOp{Op: OpParam, Arg: ParamArg{Format: arg.Format, Constant: arg.Constant}}
		return mixWords(hashNode(&probe), c.leaf[u])
	}
	probe := UOp{Op: u.Op, DType: u.DType, Arg: u.Arg}
	if top, ok := c.vars[u]; ok {
		v := u.Arg.(VarArg)
		v.Hi = top
		probe.Arg = v
	}
	return hashNode(&probe)
}

// isChain reports Idx sums, products and extrema, whose operands form a
// multiset.
func isChain(u *UOp) bool {
	return u.DType == Idx && len(u.Src) == 2 && (u.Op == OpAdd || u.Op == OpMul || u.Op == OpMin || u.Op == OpMax)
}

// isSymmetric reports integer and Bool ops whose two sources are ordered by
// structure only.
func isSymmetric(u *UOp) bool {
	return len(u.Src) == 2 && !u.Src[0].DType.IsFloat() && slices.Contains(Commutative, u.Op)
}

// refine gives every leaf a colour that also tells where it is used.
func (c *colouring) refine(root *UOp) {
	context := map[*UOp]uint64{root: 1}
	for _, u := range slices.Backward(c.order) {
		up := mixWords(context[u], c.hash[u])
		symmetric := isChain(u) || isSymmetric(u)
		for i, s := range u.Src {
			switch {
			case isChain(u) && s.Op == u.Op && s.DType == u.DType:
				// A partial sum has no context of its own: its operands
				// belong to the whole. (Shared partial sums add up.)
				context[s] += context[u]
			case symmetric:
				context[s] += mixWords(up)
			default:
				context[s] += mixWords(up, uint64(i)+2)
			}
		}
	}
	for _, u := range c.order {
		if u.Op == OpRange || u.Op == OpParam {
			c.leaf[u] = mixWords(c.leaf[u], context[u])
		}
	}
}

// number lists ranges and params in order of first visit, operands of
// commutative ops by their hashes.
func (c *colouring) number(root *UOp) (ranges map[*UOp]int, params []*UOp) {
	ranges = make(map[*UOp]int)
	Walk(func(u *UOp) []*UOp {
		switch u.Op {
		case OpRange:
			ranges[u] = len(ranges)
		case OpParam:
			params = append(params, u)
		}
		return c.visitOrder(u)
	}, root)
	return ranges, params
}

// visitOrder is the order in which a node's sources are visited: a STORE's
// loops first, so that ids follow loop order.
func (c *colouring) visitOrder(u *UOp) []*UOp {
	switch {
	case u.Op == OpStore:
		return append(slices.Clone(u.Ranges()), u.Src[:2+len(u.Indices())]...)
	case isChain(u):
		list := chainOperands(u)
		slices.SortStableFunc(list, func(x, y *UOp) int { return cmp.Compare(c.hash[x], c.hash[y]) })
		return list
	case isSymmetric(u) && c.hash[u.Src[0]] > c.hash[u.Src[1]]:
		return []*UOp{u.Src[1], u.Src[0]}
	}
	return u.Src
}

// chainOperands flattens nested nodes of one commutative op.
func chainOperands(u *UOp) []*UOp {
	var list []*UOp
	stack := []*UOp{u}
	for len(stack) > 0 && len(list) < 1<<bits.Len(maxTerms) {
		x := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if x.Op == u.Op && x.DType == u.DType {
			stack = append(stack, x.Src[1], x.Src[0])
		} else {
			list = append(list, x)
		}
	}
	return append(list, stack...)
}

// canonicaliser rebuilds a graph with new names.
type canonicaliser struct {
	arena  *Arena
	linear *Linearizer
	done   map[*UOp]*UOp
	ranges map[*UOp]int // new id
	slots  map[int]int  // old slot to new
}

func (c *canonicaliser) rename(u *UOp) *UOp {
	src := lists.Map(u.Src, func(s *UOp) *UOp { return c.done[s] })
	switch arg := u.Arg.(type) {
	case RangeArg:
		return c.arena.Make(OpRange, u.DType, RangeArg{c.ranges[u]}, src...)
	case ParamArg:
		renamed := c.arena.Make(OpParam, u.DType, ParamArg{c.slots[arg.Slot], arg.Format, arg.Constant}, src...)
		c.arena.Became(u, renamed)
		return renamed
	}
	switch {
	case isChain(u) && (u.Op == OpAdd || u.Op == OpMul):
		return c.linear.Of(c.arena.Make(u.Op, Idx, nil, src...)).Build(c.arena)
	case isChain(u):
		list := chainOperands(c.arena.Make(u.Op, Idx, nil, src...))
		SortNodes(list)
		out := list[0]
		for _, x := range list[1:] {
			out = c.arena.Make(u.Op, Idx, nil, out, x)
		}
		return out
	case isSymmetric(u) && Compare(src[0], src[1]) > 0:
		src[0], src[1] = src[1], src[0]
	}
	return c.arena.With(u, src)
}
