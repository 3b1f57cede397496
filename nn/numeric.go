package nn

import (
	"fmt"
	"slices"
	"strings"

	"tgc/ir"
	"tgc/target"
	"tgc/tensor"
)

// Numeric is a numeric mode: which numbers activations are while they are
// multiplied with packed weights, and with those of f16 and bf16 where they are
// many rows (roundBeside), and in Int8 what attention of many queries multiplies (AttentionOptions). Everything else is f32 in every mode.
type Numeric uint8

// The modes. The error is what one matrix product loses against f32, as NMSE.
const (
	Exact Numeric = iota // f32; many rows keep 23 of its 24 bits on GPUs, where an f16 has 11 (decision 0058)
	Int8                 // 8-bit integers, one scale for 32 of them: 2e-5; of many rows on some targets halves, and weights too: 5e-6
	Int16                // two 8-bit digits, one scale for 32 of them: 4e-10
	Half                 // f16: 3e-8
)

var numericNames = []string{Exact: "exact", Int8: "int8", Int16: "i16", Half: "f16"}

// String is the mode's name on the command line.
func (n Numeric) String() string { return numericNames[n] }

// NumericNames lists the modes, exact first.
func NumericNames() []string { return append([]string(nil), numericNames...) }

// ParseNumeric is the inverse of String.
func ParseNumeric(name string) (Numeric, error) {
	for n, s := range numericNames {
		if s == name {
			return Numeric(n), nil
		}
	}
	return Exact, fmt.Errorf("nn: numeric mode %q: want %s", name, strings.Join(numericNames, ", "))
}

// quantGroup is how many neighbouring activations share a scale. No packed
// format has smaller blocks, so a group never crosses two of them.
const quantGroup = 32

const (
	largestHalf  = 65504 // of an f16
	int8Largest  = 127
	int16Largest = 32512 // 127*256: both digits stay signed bytes
	digitBase    = 256
	digitBits    = 8
	leastGroup   = 1e-30 // as the largest of a group: below it all count as 0
)

// roundAdd is 3*2^22: added to a float of at most 2^22 it leaves the nearest
// integer, ties to even, in the low bits of the sum. No machine has a wide unit
// for conversions (16 a cycle on a multiprocessor of a GPU, of 128 additions), and
// the digits are bytes of the sum.
const roundAdd = 3 << 22

// Round gives the f32 values nearest to x [.., K] that the mode can hold:
// integers times a scale for each group along the last axis, where the integers
// are a conversion that no algebra looks into. A product with packed weights then
// becomes sums of integers, by rules.
func (n Numeric) Round(x *tensor.Tensor) *tensor.Tensor {
	switch n {
	case Half:
		return x.Cast(ir.F16).Cast(ir.F32)
	case Int8:
		return groupwise(x, int8Largest, func(v *tensor.Tensor) *tensor.Tensor {
			return v.Cast(ir.I8).Cast(ir.F32)
		})
	case Int16:
		return groupwise(x, int16Largest, func(v *tensor.Tensor) *tensor.Tensor {
			high := v.AddScalar(digitBase / 2).Shr(x.Graph().Scalar(ir.I32, digitBits))
			high, low := high.Cast(ir.I8).Cast(ir.F32), v.Cast(ir.I8).Cast(ir.F32)
			return high.MulScalar(digitBase).Add(low)
		})
	}
	return x
}

// groupwise scales each group of x to integers up to largest, lets digits turn
// them into what is stored, and scales back. The integers come in the low 22 bits
// of an I32. Those of a single row do without the factor of a norm, so that who rounds it
// need not wait for the norm, and so do those of few rows where each block of threads rounds
// them for itself; other rows are rounded once, for all that multiply them.
func groupwise(x *tensor.Tensor, largest float64, digits func(*tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	shape := x.Shape()
	if len(shape) == 0 {
		return x
	}
	round := func(x, factor *tensor.Tensor) *tensor.Tensor {
		integers, scales := groupIntegers(x, largest)
		if factor != nil { // [.., 1, 1]
			scales = scales.Mul(factor.Unsqueeze(-1))
		}
		return digits(integers).Mul(scales).ReshapeDims(shape...)
	}
	if isRow(shape) {
		return round(x.RowFactor())
	}
	return round(x, nil).OnTarget(func(desc *target.Desc) *tensor.Tensor {
		rest, factor := x.RowFactor()
		if factor == nil || !blocksPrepare(shape, &desc.Tuning) {
			return nil
		}
		return round(rest, factor)
	})
}

// blocksPrepare reports rows of activations that each block of threads makes ready for itself.
func blocksPrepare(shape tensor.Shape, tuning *target.Tuning) bool {
	elements := int64(1)
	for _, d := range shape {
		n, constant := d.Int()
		if !constant {
			return false
		}
		elements *= n
	}
	return tuning.BlocksPrepare(rowsOf(shape), elements)
}

// groupIntegers are the integers up to largest of x [.., K] and their scales: [.., K/group, group], in the
// low 22 bits of an I32, and [.., K/group, 1].
func groupIntegers(x *tensor.Tensor, largest float64) (integers, scales *tensor.Tensor) {
	g := x.Graph()
	v := inGroups(x, GroupSize(x.Extent(-1)))
	most := v.Abs().MaxKeep(-1)
	up := reciprocal(most.Maximum(g.Scalar(ir.F32, leastGroup))).MulScalar(largest)
	return v.Mul(up).AddScalar(roundAdd).Bitcast(ir.I32), most.MulScalar(1 / largest)
}

// inGroups splits the last axis of x [.., K]: [.., K/group, group].
func inGroups(x *tensor.Tensor, group int) *tensor.Tensor {
	shape := x.Shape()
	last := len(shape) - 1
	return x.ReshapeDims(append(shape[:last:last], x.Graph().Dims(x.Extent(-1)/group, group)...)...)
}

// GroupSize is how many neighbours of k share a scale: 32, or the largest power of two below it that divides k.
func GroupSize(k int) int {
	group := quantGroup
	for group > 1 && k%group != 0 {
		group /= 2
	}
	return group
}

// Int8Groups are the integers (i8) nearest to x [.., K] in units of the scales of their groups:
// [.., K] and [.., K/group], where a group has GroupSize(K) elements, as Q8_0 has them.
func Int8Groups(x *tensor.Tensor) (numbers, scales *tensor.Tensor) {
	integers, scales := groupIntegers(x, int8Largest)
	return integers.Cast(ir.I8).ReshapeDims(x.Shape()...), scales.Squeeze(-1)
}

// ScaleGroups is the inverse of Int8Groups, in f32.
func ScaleGroups(numbers, scales *tensor.Tensor) *tensor.Tensor {
	group := numbers.Extent(-1) / scales.Extent(-1)
	scaled := inGroups(numbers.Cast(ir.F32), group).Mul(scales.Cast(ir.F32).Unsqueeze(-1))
	return scaled.ReshapeDims(numbers.Shape()...)
}

// Reciprocals by Newton's method, from a first guess of the floats' bits (Blinn, Floating-Point Tricks, IEEE
// Computer Graphics and Applications 17(4), 1997): the logarithm of a float is nearly its bits as an
// integer, so that bits subtracted from twice those of 1, less what makes the error least, are those of nearly 1/x.
const (
	reciprocalGuess = 0x7ef311c3 // within 13 %
	reciprocalSteps = 3          // each squares the error
)

// reciprocal is 1/x to some 1e-7 of positive x up to 2^126. A correctly rounded division has a branch
// on a GPU that nothing is scheduled across, and integers need no such care.
func reciprocal(x *tensor.Tensor) *tensor.Tensor {
	g := x.Graph()
	r := g.Scalar(ir.I32, reciprocalGuess).Sub(x.Bitcast(ir.I32)).Bitcast(ir.F32)
	for range reciprocalSteps {
		r = r.Mul(g.Scalar(ir.F32, 2).Sub(x.Mul(r)))
	}
	return r
}

// isRow reports the shape of a single row.
func isRow(shape tensor.Shape) bool {
	return !slices.ContainsFunc(shape[:len(shape)-1], func(n *ir.UOp) bool { return !n.IsInt(1) })
}

// Linear is x [.., K] times w [N, K] transposed: [.., N]. What is rounded may depend on the target (asHalves, asExact).
func (n Numeric) Linear(x, w *tensor.Tensor) *tensor.Tensor {
	return n.activations(x, w).Linear(w).OnTarget(func(desc *target.Desc) *tensor.Tensor {
		switch rows := rowsOf(x.Shape()); {
		case n.asHalves(w, rows, desc):
			return toBF16(x).Linear(toBF16(w))
		case n.asExact(w, rows, desc):
			return x.Linear(w)
		}
		return nil
	})
}

// inBytes reports activations that are integers of 8 bits beside w, one or two each.
func (n Numeric) inBytes(w *tensor.Tensor) bool { return w.IsPacked() && (n == Int8 || n == Int16) }

// asExact reports rows that a target multiplies faster as they are than as two digits each, whose sums of groups have a scale.
func (n Numeric) asExact(w *tensor.Tensor, rows int64, desc *target.Desc) bool {
	least := desc.Tuning.ExactRows
	return n == Int16 && w.IsPacked() && least > 0 && rows >= least
}

// asHalves reports rows that a target multiplies faster as bf16 with weights of bf16 than as bytes with packed ones, whose sums of groups
// each have a scale. A product has a quarter of the error then (5e-6).
func (n Numeric) asHalves(w *tensor.Tensor, rows int64, desc *target.Desc) bool {
	least := desc.Tuning.HalfRows
	return n == Int8 && w.IsPacked() && least > 0 && rows >= least
}

// toBF16 gives the values nearest to t that a bf16 holds.
func toBF16(t *tensor.Tensor) *tensor.Tensor { return t.Cast(ir.BF16).Cast(ir.F32) }

// activations is x as it is multiplied with w.
func (n Numeric) activations(x, w *tensor.Tensor) *tensor.Tensor {
	if w.IsPacked() {
		return n.Round(x)
	}
	return n.roundBeside(x, storedType(w))
}

// roundedRows is from how many rows on activations are rounded beside weights of f16 and bf16. The time of fewer is that of the
// weights' bytes: batches of eight of LLaMA 1B's shape in BF16 took as long with rounded activations on an H100 (7,399 tokens a
// second, rounded 7,284), and longer on a Zen 5 core, which widens them again for every row of weights (125, rounded 117).
const roundedRows = 16

// roundBeside gives the values nearest to x that a matrix instruction of the weights' type, f16 or bf16, multiplies: an
// f32 would be three terms, each with an instruction for every term of a weight.
func (n Numeric) roundBeside(x *tensor.Tensor, weights ir.DType) *tensor.Tensor {
	switch {
	case rowsOf(x.Shape()) < roundedRows:
	case n == Int8 && weights == ir.BF16:
		return toBF16(x)
	case (n == Int8 || n == Half) && weights == ir.F16:
		return x.Clamp(-largestHalf, largestHalf).Cast(ir.F16).Cast(ir.F32)
	}
	return x
}

// rowsOf counts the rows of a shape, each dimension that is not known as one.
func rowsOf(shape tensor.Shape) int64 {
	rows := int64(1)
	for _, d := range shape[:max(len(shape)-1, 0)] {
		if n, ok := d.Int(); ok {
			rows *= n
		}
	}
	return rows
}

// storedType is that of the values which a tensor widens.
func storedType(t *tensor.Tensor) ir.DType {
	if u := t.Node(); u != nil && u.Op == ir.OpCast {
		return u.Src[0].DType
	}
	return t.DType()
}
