package llvm

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/ir"
	"tgc/ir/program"
)

// elemTypes maps dtypes to the LLVM type of a value; in memory Bool is i8.
var elemTypes = map[ir.DType]types.Type{
	ir.Bool: types.I1, ir.I8: types.I8, ir.I16: types.I16, ir.I32: types.I32, ir.I64: types.I64,
	ir.U8: types.I8, ir.U16: types.I16, ir.U32: types.I32, ir.U64: types.I64,
	ir.F8E4M3: types.I8, ir.F8E5M2: types.I8, ir.F16: types.I16, ir.BF16: types.I16,
	ir.F32: types.Float, ir.F64: types.Double,
}

func elemType(d ir.DType) types.Type {
	if t, ok := elemTypes[d]; ok {
		return t
	}
	panic(fmt.Sprintf("render/llvm: dtype %s has no type", d))
}

func memoryType(d ir.DType) types.Type {
	if d == ir.Bool {
		return types.I8
	}
	return elemType(d)
}

func vectorOf(elem types.Type, lanes int) types.Type {
	if lanes == 1 {
		return elem
	}
	return types.NewVector(uint64(lanes), elem)
}

func valueType(t program.Type) types.Type {
	if t.Ptr {
		return types.NewPointer(memoryType(t.Elem))
	}
	return vectorOf(elemType(t.Elem), t.Lanes)
}

// literal is a constant that is already text: llir's own constants go through
// big numbers, which costs more than everything else together.
type literal struct {
	typ  types.Type
	text string
}

func (l *literal) String() string   { return l.typ.String() + " " + l.text }
func (l *literal) Type() types.Type { return l.typ }
func (l *literal) Ident() string    { return l.text }
func (l *literal) IsConstant()      {}

var _ constant.Constant = (*literal)(nil)

// word writes one element: i is its integer value or float bits by type.
func word(t types.Type, n int64, f float64) string {
	switch t {
	case types.I1:
		return strconv.FormatBool(n != 0)
	case types.Float, types.Double:
		// Both are written as the bits of a double; a float's must have no
		// bits past its own.
		if f != f {
			return "0x7FF8000000000000"
		}
		return fmt.Sprintf("0x%016X", math.Float64bits(f))
	}
	if i, ok := t.(*types.IntType); ok && i.BitSize < 64 {
		n = n << (64 - i.BitSize) >> (64 - i.BitSize) // as LLVM prints it: signed
	}
	return strconv.FormatInt(n, 10)
}

// elementLiteral is the text of one element of a dtype.
func elementLiteral(d ir.DType, n int64, f float64) string {
	t := elemType(d)
	if d.IsFloat() && d != ir.F32 && d != ir.F64 {
		n = int64(ir.FloatBits(d, f))
	}
	return word(t, n, f)
}

// intOf is an integer constant in every lane of t's shape.
func intOf(t types.Type, n int64) value.Value { return splat(t, n, 0) }

// floatOf is a float constant in every lane of t's shape.
func floatOf(t types.Type, f float64) value.Value { return splat(t, 0, f) }

func splat(t types.Type, n int64, f float64) value.Value {
	v, ok := t.(*types.VectorType)
	if !ok {
		return &literal{t, word(t, n, f)}
	}
	return vectorLiteral(v, func(int) string { return word(v.ElemType, n, f) })
}

func vectorLiteral(t *types.VectorType, lane func(i int) string) value.Value {
	var b strings.Builder
	elem := t.ElemType.String() + " "
	zeros := true
	b.WriteByte('<')
	for i := range int(t.Len) {
		if i > 0 {
			b.WriteString(", ")
		}
		text := lane(i)
		zeros = zeros && isZero(text)
		b.WriteString(elem)
		b.WriteString(text)
	}
	if zeros {
		return &literal{t, "zeroinitializer"}
	}
	b.WriteByte('>')
	return &literal{t, b.String()}
}

// isZero reports the text of an element of all zero bits.
func isZero(text string) bool {
	return text == "0" || text == "false" || text == "0x0000000000000000"
}

func undef(t types.Type) value.Value { return &literal{t, "undef"} }

// shuffleMask is a constant mask; -1 is undefined.
func shuffleMask(mask []int) value.Value {
	return vectorLiteral(types.NewVector(uint64(len(mask)), types.I32), func(i int) string {
		if mask[i] < 0 {
			return "undef"
		}
		return strconv.Itoa(mask[i])
	})
}

// isFloat reports float or double, scalar or vector.
func isFloat(t types.Type) bool {
	if v, ok := t.(*types.VectorType); ok {
		t = v.ElemType
	}
	return t == types.Float || t == types.Double
}

// suffix is a type's part of an intrinsic's name: i32, v16f32, p0i8.
func suffix(t types.Type) string {
	switch t := t.(type) {
	case *types.VectorType:
		return "v" + strconv.FormatUint(t.Len, 10) + suffix(t.ElemType)
	case *types.PointerType:
		return "p0" + suffix(t.ElemType)
	case *types.IntType:
		return "i" + strconv.FormatUint(t.BitSize, 10)
	}
	if t == types.Double {
		return "f64"
	}
	return "f32"
}
