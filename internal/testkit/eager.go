package testkit

import (
	"math"
	"slices"

	"tgc/ir"
	"tgc/runtime/interp"
)

// Number is a value with what may differ between two right evaluations of it.
type Number struct {
	ir.Scalar
	// Error bounds the difference between any two evaluations: 0 means equal
	// bits, +Inf that nothing is known.
	Error float64
	// Magnitude is the sum of the absolute values of the terms that the value
	// was added up from: rounding errors are relative to this.
	Magnitude float64
	// Residual is what rounding took from a product: a sum of it may be
	// contracted to FMA, which leaves that rounding out.
	Residual float64
	// Origin tells inexact values apart: two numbers with one origin are one
	// computed value, whatever it is. 0 for exact ones.
	Origin int32
}

// Numbers is a dense row-major array of them.
type Numbers = interp.ArrayOf[Number]

// Eager evaluates tensor-graph nodes one whole array at a time.
type Eager struct {
	*interp.TensorEval[Number]

	// precision of f32: rounded, or float64 throughout.
	precision
	now  *ir.UOp          // the node at hand
	wild map[*ir.UOp]bool // nodes that an infinity or NaN went into
	made int32            // inexact values so far
}

// NewEager makes an evaluator over some contents, of packed buffers decoded.
func NewEager(buffers map[int64]*Numbers, vars map[string]int64) *Eager {
	e := &Eager{wild: make(map[*ir.UOp]bool)}
	e.TensorEval = interp.NewTensorEval[Number](e, buffers, vars)
	return e
}

// Results evaluates a SINK of ASSIGNs: the last version of each buffer.
func (e *Eager) Results(sink *ir.UOp) map[int64]*Numbers {
	e.Eval(sink)
	return e.TensorEval.Results(sink)
}

// Eval computes a node and all that it depends on.
func (e *Eager) Eval(root *ir.UOp) *Numbers {
	for _, u := range e.Nodes(root) {
		e.now = u
		if err := e.Compute(u); err != nil {
			panic(err)
		}
		e.wild[u] = e.isWild(u)
	}
	return e.Values[root]
}

// isWild reports that u or what it was made of is not finite.
func (e *Eager) isWild(u *ir.UOp) bool {
	for _, s := range u.Src {
		if e.wild[s] {
			return true
		}
	}
	return slices.ContainsFunc(e.Values[u].Data, func(n Number) bool { return math.IsInf(n.F, 0) || math.IsNaN(n.F) })
}

// exact is a number that is the same in every evaluation.
func exact(dtype ir.DType, s ir.Scalar) Number {
	n := Number{Scalar: s}
	if dtype.IsFloat() {
		n.Magnitude = math.Abs(s.F)
	}
	return n
}

// Exact is a number that the graph states.
func (e *Eager) Exact(dtype ir.DType, s ir.Scalar) Number { return exact(dtype, s) }

// Index is known of numbers without error alone.
func (e *Eager) Index(n Number) (int64, bool) { return n.I, n.Error == 0 }

// Unknown is a number of which nothing is known.
func (e *Eager) Unknown(n Number) Number {
	n.Error = math.Inf(1)
	return n
}

// Apply computes an elementwise op.
func (e *Eager) Apply(op ir.Op, dtype, src ir.DType, args []Number) Number {
	return e.named(e.apply(op, dtype, src, args))
}

// named gives an inexact value that was just computed an origin.
func (e *Eager) named(n Number) Number {
	if n.Error != 0 && n.Origin == 0 {
		e.made++
		n.Origin = e.made
	}
	return n
}

// Fold begins a reduce, a scan or what scattered values are added to.
func (e *Eager) Fold(op ir.Op, dtype ir.DType, start ...Number) interp.Fold[Number] {
	f := &eagerFold{e, e.fold(op, dtype)}
	for _, n := range start {
		f.Add(n)
	}
	return f
}

type eagerFold struct {
	eager *Eager
	fold  fold
}

func (f *eagerFold) Add(n Number) { f.fold.add(n) }

// Result is unknown of nothing where a factor may be infinite: the rules assume
// finite factors, and one that moves out of an empty sum, 1/0 of an empty softmax,
// meets the sum's 0.
func (f *eagerFold) Result() Number {
	n := f.eager.named(f.fold.result())
	if f.fold.count == 0 && f.eager.wild[f.eager.now.Src[0]] {
		return f.eager.Unknown(n)
	}
	return n
}

// AtExtents cuts the buffers that a graph names to their shapes under vars.
func AtExtents(sink *ir.UOp, buffers map[int64]*Numbers, vars map[string]int64) map[int64]*Numbers {
	e := NewEager(buffers, vars)
	out := make(map[int64]*Numbers)
	for _, u := range ir.Toposort(sink) {
		if u.Op == ir.OpBuffer {
			out[u.Arg.(ir.BufferArg).ID] = e.Eval(u)
		}
	}
	return out
}
