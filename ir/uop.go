package ir

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
)

// UOp is an immutable graph node. All fields are read-only once it is made.
// Within an Arena two nodes with the same contents are one pointer.
type UOp struct {
	Op     Op
	DType  DType
	index  bool   // of index arithmetic that is built on nothing else: see Renew
	number uint32 // in the order in which the arena made it, from 1; 0: outside any. See NodeMap
	Arg    Arg    // nil or the type that the op's ArgKind says
	Src    []*UOp

	hash uint64 // of op, dtype, arg and the sources' hashes: never of addresses
}

// String is an index expression as shapes print it (3, n, add(n 1)), and of other nodes op
// and dtype: see Print for whole graphs.
func (u *UOp) String() string {
	if u == nil {
		return "<nil>"
	}
	if n, ok := u.Int(); ok {
		return strconv.FormatInt(n, 10)
	}
	if v, ok := u.Arg.(VarArg); ok {
		return v.Name
	}
	if u.DType != Idx {
		return u.Op.String() + " " + u.DType.String()
	}
	parts := make([]string, len(u.Src))
	for i, s := range u.Src {
		parts[i] = s.String()
	}
	return u.Op.String() + "(" + strings.Join(parts, " ") + ")"
}

// Hash is a structural hash: the same for equal graphs in any process.
func (u *UOp) Hash() uint64 { return u.hash }

// New makes a node outside any arena (the user's long-lived lazy graph).
func New(op Op, dtype DType, arg Arg, src ...*UOp) *UOp {
	u := &UOp{Op: op, DType: dtype, Arg: arg, Src: src}
	u.hash = hashNode(u)
	return u
}

// Arena interns the nodes of one compilation and is dropped whole. It is not
// safe for concurrent use.
type Arena struct {
	table   []*UOp // open addressing by hash; its length is a power of 2
	slab    []UOp
	index   [][]UOp // slabs of nodes of index arithmetic
	made    int
	monoids NodeMap[*Monoid] // of tuple REDUCEs; see MonoidOf
	origins *origins         // nil: nobody asks; see Trace
}

// NewArena makes an empty arena.
func NewArena() *Arena { return &Arena{table: make([]*UOp, 1<<10)} }

// All are the nodes of the arena, in no order.
func (a *Arena) All() iter.Seq[*UOp] {
	return func(yield func(*UOp) bool) {
		for _, u := range a.table {
			if u != nil && !yield(u) {
				return
			}
		}
	}
}

// Len is the number of nodes made: a compile-time counter that goldens pin.
func (a *Arena) Len() int { return a.made }

// Make returns the one node with these contents. It keeps src when the node is
// new, so callers must not change the slice afterwards.
func (a *Arena) Make(op Op, dtype DType, arg Arg, src ...*UOp) *UOp {
	probe := UOp{Op: op, DType: dtype, Arg: arg, Src: src}
	probe.hash = hashNode(&probe)
	at := a.find(&probe)
	if u := a.table[at]; u != nil {
		return u
	}
	u := a.store(probe)
	a.made++
	u.number = uint32(a.made)
	a.table[at] = u
	if 2*a.made > len(a.table) {
		a.grow()
	}
	if a.origins != nil {
		a.origins.made(u)
	}
	return u
}

// store puts a node into a slab.
func (a *Arena) store(node UOp) *UOp {
	slab := &a.slab
	node.index = node.DType == Idx && !slices.ContainsFunc(node.Src, func(s *UOp) bool { return !s.index })
	if node.index {
		if last := len(a.index) - 1; last < 0 || len(a.index[last]) == cap(a.index[last]) {
			a.index = append(a.index, make([]UOp, 0, 64<<min(len(a.index), 4)))
		}
		slab = &a.index[len(a.index)-1]
	} else if len(a.slab) == cap(a.slab) {
		a.slab = make([]UOp, 0, 1024)
	}
	*slab = append(*slab, node)
	return &(*slab)[len(*slab)-1]
}

// Renew forgets all nodes but those of index arithmetic, extents among them, which stay the
// nodes that they are. What goes on must be made again.
func (a *Arena) Renew() {
	*a = Arena{table: make([]*UOp, 1<<10), index: a.index}
	for _, slab := range a.index {
		for i := range slab {
			u := &slab[i]
			a.table[a.find(u)] = u
			a.made = max(a.made, int(u.number))
			if 2*a.made > len(a.table) {
				a.grow()
			}
		}
	}
}

// Again makes a node of before Renew once more, of other sources; one of index arithmetic
// is what it was.
func (a *Arena) Again(u *UOp, src []*UOp) *UOp {
	if u.index {
		return u
	}
	return a.Make(u.Op, u.DType, u.Arg, src...)
}

// find is the place in the table of the node with these contents, or the empty
// one where it belongs.
func (a *Arena) find(probe *UOp) int {
	mask := len(a.table) - 1
	at := int(probe.hash) & mask
	for ; a.table[at] != nil; at = (at + 1) & mask {
		u := a.table[at]
		if u.hash == probe.hash && u.Op == probe.Op && u.DType == probe.DType && u.Arg == probe.Arg && slices.Equal(u.Src, probe.Src) {
			break
		}
	}
	return at
}

// grow makes room for twice as many nodes.
func (a *Arena) grow() {
	old := a.table
	a.table = make([]*UOp, 2*len(old))
	mask := len(a.table) - 1
	for _, u := range old {
		if u == nil {
			continue
		}
		at := int(u.hash) & mask
		for a.table[at] != nil {
			at = (at + 1) & mask
		}
		a.table[at] = u
	}
}

// With returns u with other sources (u itself when they are equal).
func (a *Arena) With(u *UOp, src []*UOp) *UOp {
	if slices.Equal(u.Src, src) {
		return u
	}
	before := a.MakeFor(u)
	to := a.Make(u.Op, u.DType, u.Arg, src...)
	a.MakeAgainFor(before)
	a.Became(u, to)
	return to
}

// Import copies a graph of un-interned (or another arena's) nodes into a.
func (a *Arena) Import(root *UOp) *UOp {
	return a.Rebuild(root, func(u *UOp, src []*UOp) *UOp {
		return a.Make(u.Op, u.DType, u.Arg, src...)
	})
}

// hashNode mixes contents and the sources' hashes (FNV-1a over 64-bit words
// with a final avalanche), so it does not depend on addresses or order of
// creation.
func hashNode(u *UOp) uint64 {
	h := uint64(14695981039346656037)
	mix := func(v uint64) { h = (h ^ v) * 1099511628211; h ^= h >> 29 }
	text := func(s string) {
		mix(uint64(len(s)))
		for i := range len(s) {
			mix(uint64(s[i]))
		}
	}
	mix(uint64(u.Op)<<8 | uint64(u.DType))
	switch arg := u.Arg.(type) {
	case nil:
	case IntArg:
		mix(uint64(arg))
	case FloatArg:
		mix(uint64(arg) + 1)
	case AxesArg:
		text(string(arg))
	case VarArg:
		text(arg.Name)
		mix(uint64(arg.Lo))
		mix(uint64(arg.Hi))
		mix(uint64(arg.Multiple))
		mix(boolWord(arg.Device))
	case BufferArg:
		mix(uint64(arg.ID))
		text(arg.Format)
	case TableArg:
		text(arg.Data)
	case ParamArg:
		mix(uint64(arg.Slot))
		text(arg.Format)
		if arg.Constant {
			mix(1)
		}
	case RangeArg:
		mix(uint64(arg.ID))
	case FieldArg:
		text(arg.Format)
		text(arg.Field)
	case ReduceArg:
		mix(uint64(arg.Op)<<32 | uint64(arg.N))
	case StageArg:
		mix(uint64(arg.Space))
	case ValueArg:
		mix(uint64(arg.ID))
	default:
		panic(fmt.Sprintf("ir: arg type %T has no hash", u.Arg))
	}
	for _, s := range u.Src {
		mix(s.hash)
	}
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	return h
}

func boolWord(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Toposort lists the nodes under the roots, sources first, in an order that
// depends only on the graph. It does not recurse.
func Toposort(roots ...*UOp) []*UOp {
	return ToposortWithin(nil, roots...)
}

// ToposortWithin is Toposort without the sources, and what is under them alone, that are
// outside; nil: of all.
func ToposortWithin(outside func(u *UOp) bool, roots ...*UOp) []*UOp {
	var order []*UOp
	type frame struct {
		node *UOp
		next int
	}
	var seen Visited
	var stack []frame
	for _, root := range roots {
		if !seen.Add(root) {
			continue
		}
		stack = append(stack, frame{node: root})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.next == len(top.node.Src) {
				order = append(order, top.node)
				stack = stack[:len(stack)-1]
				continue
			}
			child := top.node.Src[top.next]
			top.next++
			if (outside == nil || !outside(child)) && seen.Add(child) {
				stack = append(stack, frame{node: child})
			}
		}
	}
	return order
}

// Walk visits the nodes under the roots in preorder, each once. visit returns the sources
// to go on with: u.Src for all of them.
func Walk(visit func(u *UOp) []*UOp, roots ...*UOp) {
	var seen Visited
	stack := slices.Clone(roots)
	slices.Reverse(stack)
	for len(stack) > 0 {
		u := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !seen.Add(u) {
			continue
		}
		for _, s := range slices.Backward(visit(u)) {
			stack = append(stack, s)
		}
	}
}

// Substitute replaces nodes under root by the map, bottom-up: replacements are
// not searched again. Nodes are rebuilt in the arena.
func (a *Arena) Substitute(root *UOp, with map[*UOp]*UOp) *UOp {
	r := Rebuild{Arena: a, Instead: func(u *UOp) *UOp { return with[u] }}
	return r.Do(root)
}

// Int returns the value of an integer, Bool or Idx CONST.
func (u *UOp) Int() (value int64, ok bool) {
	if u.Op == OpConst {
		if v, isInt := u.Arg.(IntArg); isInt {
			return int64(v), true
		}
	}
	return 0, false
}

// Float returns the value of a float CONST.
func (u *UOp) Float() (value float64, ok bool) {
	if u.Op == OpConst {
		if v, isFloat := u.Arg.(FloatArg); isFloat {
			return math.Float64frombits(uint64(v)), true
		}
	}
	return 0, false
}

// IsInt reports the integer, Bool or Idx CONST v.
func (u *UOp) IsInt(v int64) bool {
	got, ok := u.Int()
	return ok && got == v
}

// IsFloat reports the float CONST v (-0 equals +0 here).
func (u *UOp) IsFloat(v float64) bool {
	got, ok := u.Float()
	return ok && got == v
}

// Ranges returns the loop ranges of a STORE.
func (u *UOp) Ranges() []*UOp { return u.Src[2+int(u.Arg.(IntArg)):] }

// Indices returns the index expressions of a LOAD or STORE.
func (u *UOp) Indices() []*UOp {
	if u.Op == OpStore {
		return u.Src[2 : 2+int(u.Arg.(IntArg))]
	}
	return u.Src[1:]
}
