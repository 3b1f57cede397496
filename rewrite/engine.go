package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
)

// Context is what rules may look at and build with.
type Context struct {
	Arena  *ir.Arena
	Bounds *ir.Bounds
	Linear *ir.Linearizer

	quotients map[[2]*ir.UOp]ir.LinearForm
}

// NewContext makes the context of one arena.
func NewContext(a *ir.Arena) *Context {
	return &Context{Arena: a, Bounds: ir.NewBounds(), Linear: ir.NewLinearizer(a)}
}

// Firing is one rule applied once, for traces.
type Firing struct {
	Rule          *Rule
	Before, After *ir.UOp
}

// Engine applies sets of rules to graphs of one arena, bottom-up to a
// fixpoint, and remembers the results: a node is simplified once, however
// often and from whatever root it is met. Every RANGE is left as it is, extent
// included, because it is the identity of a loop.
type Engine struct {
	Context
	// Trace, when set, is called for every firing.
	Trace func(Firing)

	byOp  [ir.NumOps][]*Rule
	done  ir.NodeMap[*ir.UOp]
	fired map[*Rule]int
	stack []frame
}

// frame is a node on the way: its sources first, then what the rules made of
// it.
type frame struct {
	origin *ir.UOp // the node asked for
	node   *ir.UOp // with simplified sources; nil before
	next   *ir.UOp // what a rule made of node; nil before
	via    *chain
}

// chain lists the firings that led to a node, newest first.
type chain struct {
	rule *Rule
	prev *chain
	len  int
}

// maxChain is the number of firings in a row, each on the result of the one
// before, past which rules are taken to go round in a circle. Honest chains
// are a dozen long.
const maxChain = 400

// CycleError reports rules that undo each other.
type CycleError struct {
	Rules []*Rule // distinct, sorted by name
	Node  *ir.UOp
}

func (e *CycleError) Error() string {
	names := lists.Map(e.Rules, (*Rule).String)
	return fmt.Sprintf("rewrite: rules never come to rest: %s, at a node %s %s", strings.Join(names, ", "), e.Node.Op, e.Node.DType)
}

// NewEngine makes an engine that applies the sets in this order.
func NewEngine(a *ir.Arena, sets ...*Set) *Engine {
	e := &Engine{Context: *NewContext(a), fired: make(map[*Rule]int)}
	for _, set := range sets {
		for _, r := range set.Rules {
			ops := r.On
			if r.From != nil {
				ops = []ir.Op{r.From.op}
			}
			for _, op := range ops {
				e.byOp[op] = append(e.byOp[op], r)
			}
		}
	}
	return e
}

// Apply rewrites root with the sets and reports how often each rule fired.
func Apply(a *ir.Arena, root *ir.UOp, sets ...*Set) (*ir.UOp, []Count, error) {
	e := NewEngine(a, sets...)
	out, err := e.Do(root)
	return out, e.Fired(), err
}

// Do rewrites the graph under root.
func (e *Engine) Do(root *ir.UOp) (*ir.UOp, error) {
	e.stack = append(e.stack[:0], frame{origin: root})
	for len(e.stack) > 0 {
		top := len(e.stack) - 1
		f := e.stack[top]
		switch {
		case e.done.Has(f.origin):
			e.stack = e.stack[:top]
		case f.next != nil:
			// The result has been simplified: it is ours too.
			result := e.of(f.next)
			e.done.Set(f.node, result)
			e.done.Set(f.origin, result)
		case f.node == nil:
			if !e.descend(f) {
				e.stack[top].node = e.rebuilt(f.origin)
			}
		default:
			if err := e.step(f); err != nil {
				return nil, err
			}
		}
	}
	return e.of(root), nil
}

// of is the result for a node, nil for none yet.
func (e *Engine) of(u *ir.UOp) *ir.UOp {
	r, _ := e.done.Get(u)
	return r
}

// descend pushes the sources that are not simplified yet.
func (e *Engine) descend(f frame) bool {
	if f.origin.Op == ir.OpRange {
		return false
	}
	pushed := false
	for _, s := range slices.Backward(f.origin.Src) {
		if !e.done.Has(s) {
			e.stack = append(e.stack, frame{origin: s, via: f.via})
			pushed = true
		}
	}
	return pushed
}

// rebuilt is the node over its simplified sources.
func (e *Engine) rebuilt(u *ir.UOp) *ir.UOp {
	if u.Op == ir.OpRange {
		return u
	}
	for i, s := range u.Src {
		if e.of(s) != s {
			src := slices.Clone(u.Src)
			for j := i; j < len(src); j++ {
				src[j] = e.of(src[j])
			}
			return e.Arena.With(u, src)
		}
	}
	return u
}

// step applies the first rule that fires at the top frame's node. The result
// goes on the stack, because it may hold new nodes.
func (e *Engine) step(f frame) error {
	top := len(e.stack) - 1
	if f.node != f.origin {
		if r := e.of(f.node); r != nil {
			e.done.Set(f.origin, r)
			return nil
		}
	}
	before := e.Arena.MakeFor(f.node)
	defer e.Arena.MakeAgainFor(before)
	for _, r := range e.byOp[f.node.Op] {
		after := r.apply(&e.Context, f.node)
		if after == nil || after == f.node {
			continue
		}
		e.fired[r]++
		if e.Trace != nil {
			e.Trace(Firing{r, f.node, after})
		}
		via := &chain{rule: r, prev: f.via, len: 1}
		if f.via != nil {
			via.len = f.via.len + 1
		}
		if via.len > maxChain {
			return cycle(via, f.node)
		}
		e.stack[top].next = after
		e.stack = append(e.stack, frame{origin: after, via: via})
		return nil
	}
	e.done.Set(f.node, f.node)
	e.done.Set(f.origin, f.node)
	return nil
}

// cycle names the rules of the last firings.
func cycle(via *chain, at *ir.UOp) error {
	err := &CycleError{Node: at}
	for n := 0; via != nil && n < 64; via, n = via.prev, n+1 {
		err.Rules = lists.Union(err.Rules, via.rule)
	}
	slices.SortFunc(err.Rules, func(x, y *Rule) int { return strings.Compare(x.String(), y.String()) })
	return err
}

// Count is how often a rule fired.
type Count struct {
	Rule *Rule
	N    int
}

// Fired lists the rules that fired, sorted by name.
func (e *Engine) Fired() []Count {
	list := make([]Count, 0, len(e.fired))
	for r, n := range e.fired {
		list = append(list, Count{r, n})
	}
	slices.SortFunc(list, func(x, y Count) int { return strings.Compare(x.Rule.String(), y.Rule.String()) })
	return list
}
