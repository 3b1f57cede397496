package cuda

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tgc/ir"
	"tgc/ir/program"
)

// ctype is the C type of a variable.
type ctype uint8

const (
	boolean ctype = iota
	int32Type
	uint32Type // also packed words and the bits of small floats
	int64Type
	uint64Type
	float32Type
	float64Type
	numTypes
)

// ctypes gives each type's name, the letter of its variables, and its vectors.
var ctypes = [numTypes]struct{ name, prefix, vector string }{
	boolean:     {"bool", "b", ""},
	int32Type:   {"int", "i", "int"},
	uint32Type:  {"unsigned", "u", "uint"},
	int64Type:   {"long long", "l", "longlong"},
	uint64Type:  {"unsigned long long", "m", "ulonglong"},
	float32Type: {"float", "f", "float"},
	float64Type: {"double", "d", "double"},
}

func (t ctype) String() string { return ctypes[t].name }

func (t ctype) bits() int {
	switch t {
	case boolean:
		return 1
	case int64Type, uint64Type, float64Type:
		return 64
	}
	return 32
}

func (t ctype) float() bool { return t == float32Type || t == float64Type }

// unsigned is the type of the same width without a sign.
func (t ctype) unsigned() ctype {
	switch t {
	case int32Type:
		return uint32Type
	case int64Type:
		return uint64Type
	}
	return t
}

// typeOf is the C type of lanes of v. An I64 whose bounds fit is an int; a
// narrow integer is extended; a small float is its bits.
func (r *renderer) typeOf(v *program.Value) ctype {
	switch d := v.Type.Elem; {
	case d == ir.Bool:
		return boolean
	case d == ir.F32:
		return float32Type
	case d == ir.F64:
		return float64Type
	case d == ir.U64:
		return uint64Type
	case d == ir.I64 && !r.narrow(v):
		return int64Type
	case d.IsSigned() && !d.IsFloat():
		return int32Type
	}
	return uint32Type
}

// operand is a variable or, without one, a literal of these bits.
type operand struct {
	name string
	bits uint64
	t    ctype
}

func (o operand) literal() bool { return o.name == "" }

// as is the expression of an operand as another arithmetic type; integers wrap.
func (o operand) as(t ctype) string {
	switch {
	case o.literal():
		return literal(t, o.bits)
	case o.t == t:
		return o.name
	}
	return "(" + t.String() + ")" + o.name
}

// text is the expression of an operand in its own type.
func (o operand) text() string { return o.as(o.t) }

// literal spells bits as a constant of a type.
func literal(t ctype, bits uint64) string {
	switch t {
	case boolean:
		return strconv.FormatBool(bits&1 != 0)
	case int32Type:
		if v := int32(bits); v > math.MinInt32 {
			return strconv.Itoa(int(v))
		}
		return "(-2147483647 - 1)"
	case int64Type:
		if v := int64(bits); v > math.MinInt64 {
			return strconv.FormatInt(v, 10) + "ll"
		}
		return "(-9223372036854775807ll - 1)"
	case uint64Type:
		return hex(bits) + "ull"
	case float32Type:
		return floatLiteral(float64(math.Float32frombits(uint32(bits))), 32, fmt.Sprintf("__uint_as_float(0x%08xu)", uint32(bits)))
	case float64Type:
		return floatLiteral(math.Float64frombits(bits), 64, fmt.Sprintf("__longlong_as_double(0x%016xll)", bits))
	}
	return hex(bits&math.MaxUint32) + "u"
}

func hex(bits uint64) string {
	if bits < 4096 {
		return strconv.FormatUint(bits, 10)
	}
	return "0x" + strconv.FormatUint(bits, 16)
}

// floatLiteral is the shortest decimal that reads back as the same number.
func floatLiteral(v float64, bits int, special string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return special
	}
	s := strconv.FormatFloat(v, 'g', -1, bits)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	if bits == 32 {
		s += "f"
	}
	return s
}

// wrapped is an expression of a computation in the unsigned type, as t.
func wrapped(t ctype, expression string) string {
	if t == t.unsigned() {
		return expression
	}
	return "(" + t.String() + ")(" + expression + ")"
}
