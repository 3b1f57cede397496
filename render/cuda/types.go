package cuda

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tgc/internal/lists"
	"tgc/render/gpu"
)

// types gives each type's name, the letter of its variables, and its vectors.
var types = [gpu.NumTypes]struct{ name, prefix, vector string }{
	gpu.Bool: {"bool", "b", ""},
	gpu.I32:  {"int", "i", "int"},
	gpu.U32:  {"unsigned", "u", "uint"},
	gpu.I64:  {"long long", "l", "longlong"},
	gpu.U64:  {"unsigned long long", "m", "ulonglong"},
	gpu.F32:  {"float", "f", "float"},
	gpu.F64:  {"double", "d", "double"},
}

func typeName(t gpu.Type) string { return types[t].name }

func vectorName(t gpu.Type, n int) string { return fmt.Sprintf("%s%d", types[t].vector, n) }

// operand is a variable, a literal of these bits, or an expression.
type operand = gpu.Operand

// as is the expression of an operand as another arithmetic type; integers wrap.
func as(o operand, t gpu.Type) string {
	switch {
	case o.Literal():
		return literal(t, o.Bits)
	case o.Type == t:
		return o.Name
	}
	return "(" + typeName(t) + ")" + o.Name
}

// text is the expression of an operand in its own type.
func text(o operand) string { return as(o, o.Type) }

// list is operands as a type, between commas.
func list(t gpu.Type, x ...operand) string {
	out := lists.Map(x, func(o operand) string { return as(o, t) })
	return strings.Join(out, ", ")
}

// literal spells bits as a constant of a type.
func literal(t gpu.Type, bits uint64) string {
	switch t {
	case gpu.Bool:
		return strconv.FormatBool(bits&1 != 0)
	case gpu.I32:
		if v := int32(bits); v > math.MinInt32 {
			return strconv.Itoa(int(v))
		}
		return "(-2147483647 - 1)"
	case gpu.I64:
		if v := int64(bits); v > math.MinInt64 {
			return strconv.FormatInt(v, 10) + "ll"
		}
		return "(-9223372036854775807ll - 1)"
	case gpu.U64:
		return hex(bits) + "ull"
	case gpu.F32:
		return floatLiteral(float64(math.Float32frombits(uint32(bits))), 32, fmt.Sprintf("__uint_as_float(0x%08xu)", uint32(bits)))
	case gpu.F64:
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
func wrapped(t gpu.Type, expression string) string {
	if t == t.Unsigned() {
		return expression
	}
	return "(" + typeName(t) + ")(" + expression + ")"
}
