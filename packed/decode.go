package packed

import (
	"tgc/internal/lists"
	"tgc/ir"
)

// decoder builds the decode expression of one element. Its methods are the
// vocabulary of the rows.
type decoder struct {
	a      *ir.Arena
	format *Format
	buf    *ir.UOp // packed PARAM
	row    *ir.UOp
	k      *ir.UOp // element in the row
	block  *ir.UOp // k / BlockElems
}

// digit is (k/unit)%base: with a base that divides BlockElems/unit it counts
// inside the block.
func (d *decoder) digit(unit, base int64) *ir.UOp {
	return d.a.Mod(d.a.Div(d.k, d.a.Index(unit)), d.a.Index(base))
}

// mix is the sum of digits times weights: mix(h, 32, m, 1) is 32*h + m.
func (d *decoder) mix(terms ...any) *ir.UOp {
	sum := d.a.Index(0)
	for i := 0; i < len(terms); i += 2 {
		sum = d.a.Add(sum, d.a.Mul(terms[i].(*ir.UOp), d.a.Index(int64(terms[i+1].(int)))))
	}
	return sum
}

// field reads element j of a field of this block, in its storage dtype.
func (d *decoder) field(name string, j *ir.UOp) *ir.UOp {
	fd, ok := d.format.Field(name)
	if !ok {
		panic("packed: " + d.format.Name + " has no field " + name)
	}
	arg := ir.FieldArg{Format: d.format.Name, Field: name}
	return d.a.Make(ir.OpField, fd.DType, arg, d.buf, d.row, d.block, j)
}

// scale reads a field with one element per block as f32.
func (d *decoder) scale(name string) *ir.UOp { return d.f32(d.field(name, d.a.Index(0))) }

// f32 converts exactly.
func (d *decoder) f32(x *ir.UOp) *ir.UOp { return d.a.Cast(x, ir.F32) }

// const32 is an f32 constant.
func (d *decoder) const32(v float64) *ir.UOp { return d.a.Const(ir.F32, v) }

// plus adds an f32 constant: f32(q) + -32. Written as a sum, because the
// rewrite that distributes an integer offset looks for one.
func (d *decoder) plus(x *ir.UOp, c float64) *ir.UOp { return d.a.Add(x, d.const32(c)) }

// product multiplies from the left: ((x*y)*z).
func (d *decoder) product(x *ir.UOp, factors ...*ir.UOp) *ir.UOp {
	for _, f := range factors {
		x = d.a.Mul(x, f)
	}
	return x
}

// like is the integer constant v in the dtype of x.
func (d *decoder) like(x *ir.UOp, v int64) *ir.UOp { return d.a.ConstInt(x.DType, v) }

// amount converts a digit times a weight to the dtype of x, to shift x by it.
func (d *decoder) amount(x, digit *ir.UOp, weight int64) *ir.UOp {
	return d.a.Cast(d.a.Mul(digit, d.a.Index(weight)), x.DType)
}

// right shifts by a constant.
func (d *decoder) right(x *ir.UOp, by int64) *ir.UOp {
	return d.a.Binary(ir.OpShr, x, d.like(x, by))
}

// left shifts by a constant.
func (d *decoder) left(x *ir.UOp, by int64) *ir.UOp {
	return d.a.Binary(ir.OpShl, x, d.like(x, by))
}

// mask keeps the bits of m.
func (d *decoder) mask(x *ir.UOp, m int64) *ir.UOp { return d.a.And(x, d.like(x, m)) }

// or joins bits.
func (d *decoder) or(x, y *ir.UOp) *ir.UOp { return d.a.Binary(ir.OpOr, x, y) }

// bits is x >> weight*digit & m.
func (d *decoder) bits(x, digit *ir.UOp, weight, m int64) *ir.UOp {
	return d.mask(d.a.Binary(ir.OpShr, x, d.amount(x, digit, weight)), m)
}

// bitSet is true if bit n (a digit) of x is set. A mask that moves instead of
// the bits: n usually runs along lanes, and then 1<<n is a constant vector.
func (d *decoder) bitSet(x, n *ir.UOp) *ir.UOp {
	one := d.a.Binary(ir.OpShl, d.like(x, 1), d.amount(x, n, 1))
	return d.a.Lt(d.like(x, 0), d.a.And(x, one))
}

// pick reads a constant table; integers become indices.
func (d *decoder) pick(t constTable, index ...*ir.UOp) *ir.UOp {
	for i, x := range index {
		index[i] = d.a.Cast(x, ir.Idx)
	}
	return d.a.Load(t.uop(d.a), index...)
}

// signed is -x if bit n of the sign byte is set, else x.
func (d *decoder) signed(x, signs, n *ir.UOp) *ir.UOp {
	return d.a.Where(d.bitSet(signs, n), d.a.Unary(ir.OpNeg, x), x)
}

// evenSigns turns 7 sign bits (u8, top bit clear) into 8: the last one makes
// the number of signs even.
func (d *decoder) evenSigns(seven *ir.UOp) *ir.UOp {
	parity := d.mask(d.a.Unary(ir.OpPopc, seven), 1)
	return d.or(seven, d.left(parity, 7))
}

// constTable is constant data of one-byte elements.
type constTable struct {
	dtype ir.DType
	shape []int64
	data  string
}

func (t constTable) uop(a *ir.Arena) *ir.UOp {
	extents := lists.Map(t.shape, a.Index)
	return a.Make(ir.OpTable, t.dtype, ir.TableArg{Data: t.data}, extents...)
}

// int8Table is a vector of small integers.
func int8Table(values ...int8) constTable {
	data := lists.Map(values, func(v int8) byte { return byte(v) })
	return constTable{ir.I8, []int64{int64(len(values))}, string(data)}
}
