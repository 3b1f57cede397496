package gpu

import (
	"fmt"
	"math"

	"tgc/ir"
)

// Roots of f32, correctly rounded without a branch. The assembler's own begin with the same
// instructions, but branch to a function for operands that these do not suit, and it moves nothing
// across a branch: loads that could run ahead wait for the root. Here such operands are scaled, and
// selected. A guess of the reciprocal root gives the root after a step of Newton's whose residual is
// exact (Markstein, IA-64 and Elementary Functions, 2000, chapter 9), and so on with the reciprocal.

// Below leastRoot residuals lose bits; operands there are multiplied by rootScale, a power of 4.
const (
	leastRoot = 0x1p-100
	rootScale = 0x1p64
)

// singles computes in f32, rounding each result.
type singles struct {
	*Selector
	number Number
}

func (s *Selector) singles() singles { return singles{s, Number{DType: ir.F32, Type: F32}} }

func (s singles) constant(v float64) Operand {
	return Operand{Bits: ir.FloatBits(ir.F32, v), Type: F32}
}

func (s singles) do(op ir.Op, x ...Operand) Operand {
	o, _ := s.print.Arithmetic(op, s.number, x)
	return o
}

// residual is z - x*y, rounded once.
func (s singles) residual(x, y, z Operand) Operand {
	return s.do(ir.OpFma, s.do(ir.OpNeg, x), y, z)
}

// either is one of two constants.
func (s singles) either(p Operand, x, y float64) Operand {
	return s.print.Choose(p, s.constant(x), s.constant(y), F32)
}

// is reports x == v.
func (s singles) is(x Operand, v float64) Operand {
	return s.print.Compare(ir.OpCmpEq, s.number, x, s.constant(v))
}

// root is SQRT or RSQRT of x, the latter as the reciprocal of the rounded root.
func (s *Selector) root(op ir.Op, x Operand) Operand {
	f := s.singles()
	x = s.print.Hold(x, F32)
	small := s.print.Compare(ir.OpCmpLt, f.number, x, f.constant(leastRoot))
	scaled := s.print.Choose(small, f.do(ir.OpMul, x, f.constant(rootScale)), x, F32)
	guess := s.print.Guess(ir.OpRsqrt, scaled)

	near := f.do(ir.OpMul, scaled, guess)
	root := f.do(ir.OpFma, f.residual(near, near, scaled), f.do(ir.OpMul, guess, f.constant(0.5)), near)
	special, result := x, root
	if op == ir.OpSqrt {
		result = f.do(ir.OpMul, root, f.either(small, 1/math.Sqrt(rootScale), 1))
	} else {
		special, result = guess, f.reciprocal(root, f.either(small, math.Sqrt(rootScale), 1))
	}
	ends, _ := s.print.Logic(ir.OpOr, []Operand{f.is(x, 0), f.is(x, math.Inf(1))})
	return s.print.Choose(ends, special, result, F32)
}

// branchedRoot is SQRT or RSQRT of f32 by the assembler's own instructions, rounded as Selector.root rounds.
func (s *Selector) branchedRoot(op ir.Op, n Number, x []Operand) (Operand, error) {
	root, ok := s.print.Arithmetic(ir.OpSqrt, n, x)
	if ok && op == ir.OpRsqrt {
		root, ok = s.print.Arithmetic(ir.OpRecip, n, []Operand{root})
	}
	if !ok {
		return root, fmt.Errorf("no %s of %s", op, n.DType)
	}
	return root, nil
}

// reciprocal is scale/x for a power of 2, where x, 1/x and the result are normal.
func (s singles) reciprocal(x, scale Operand) Operand {
	guess := s.print.Guess(ir.OpRecip, x)
	scaled := s.do(ir.OpMul, guess, scale) // exact
	return s.do(ir.OpFma, s.residual(x, guess, s.constant(1)), scaled, scaled)
}
