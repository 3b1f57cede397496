package opt

import (
	"tgc/ir"
	"tgc/ir/program"
)

// Fields are what weights of a few bits are made of: bits of bytes that are masked, shifted
// and joined.

// fieldFinder reads them off a program.
type fieldFinder struct {
	makers map[*program.Value]*program.Instr
}

// fieldsIn looks at a program, whose blocks may be written anew.
func fieldsIn(p *program.Program) fieldFinder {
	f := fieldFinder{make(map[*program.Value]*program.Instr)}
	p.Body.Each(func(in *program.Instr) {
		if in.Result != nil {
			copied := *in
			f.makers[in.Result] = &copied
		}
	})
	return f
}

// field is some bits of bytes, and how far they are shifted up; down, where that is negative.
type field struct {
	of   *program.Value
	bits uint8
	up   int
}

// A byte has so many bits: these.
const (
	byteBits = 8
	allBits  = 0xff
)

// fieldsOf are the fields whose sum bytes are: they themselves, if nothing else.
func (f fieldFinder) fieldsOf(v *program.Value) []field {
	whole := []field{{of: v, bits: allBits}}
	in := f.makers[v]
	if in == nil || in.Op != program.Alu || v.Type.Elem != ir.U8 || len(in.Args) != 2 {
		return whole
	}
	if in.Ir == ir.OpOr {
		x, y := f.fieldsOf(in.Args[0]), f.fieldsOf(in.Args[1])
		if reach(x)&reach(y) != 0 {
			return whole
		}
		return append(x, y...)
	}
	c, known := f.constant(in.Args[1])
	if !known || in.Ir != ir.OpShr && in.Ir != ir.OpShl && in.Ir != ir.OpAnd {
		return whole
	}
	fields := f.fieldsOf(in.Args[0])
	for i := range fields {
		if !fields[i].then(in.Ir, c) {
			return whole
		}
	}
	return fields
}

// constant is a constant that all lanes have.
func (f fieldFinder) constant(v *program.Value) (int64, bool) {
	in := f.makers[v]
	if in != nil && in.Op == program.Broadcast {
		return f.constant(in.Args[0])
	}
	if in == nil || in.Op != program.Const {
		return 0, false
	}
	return in.Int, true
}

// byteOf is the word of which a value is a byte.
func (f fieldFinder) byteOf(v *program.Value) (w *program.Value, place int, ok bool) {
	in := f.makers[v]
	if in == nil || in.Op != program.Alu || in.Ir != ir.OpCast || in.Args[0].Type != program.Scalar(ir.U32) {
		return nil, 0, false
	}
	w = in.Args[0]
	if shift := f.makers[w]; shift != nil && shift.Op == program.Alu && shift.Ir == ir.OpShr {
		if n, known := f.constant(shift.Args[1]); known && n%byteBits == 0 && n < 4*byteBits {
			return shift.Args[0], int(n / byteBits), true
		}
	}
	return w, 0, true
}

// reach are the bits that fields have in the end.
func reach(fields []field) (all uint8) {
	for _, f := range fields {
		all |= shifted(f.bits, f.up)
	}
	return all
}

// shifted are bits of a byte moved up, or down.
func shifted(bits uint8, up int) uint8 {
	if up < 0 {
		return bits >> -up
	}
	return bits << up
}

// then is what a mask or shift by a constant leaves of a field; false: that is none.
func (f *field) then(op ir.Op, c int64) bool {
	switch {
	case op == ir.OpAnd:
		f.bits &= shifted(uint8(c), -f.up)
		return true
	case c >= byteBits:
		return false
	case op == ir.OpShr:
		f.up -= int(c)
	default:
		f.up += int(c)
	}
	f.bits &= shifted(allBits, -f.up)
	return f.up > -byteBits && f.up < byteBits
}
