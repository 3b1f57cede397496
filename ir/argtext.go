package ir

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// argText writes an Arg in the text form: the part in brackets behind an op's
// dtype. Empty for no arg.
func argText(arg Arg) string {
	switch a := arg.(type) {
	case IntArg:
		return strconv.FormatInt(int64(a), 10)
	case FloatArg:
		return floatText(F64, a.Value())
	case AxesArg:
		parts := make([]string, len(a))
		for i, axis := range a.List() {
			parts[i] = strconv.Itoa(axis)
		}
		return strings.Join(parts, ",")
	case VarArg:
		s := fmt.Sprintf("%s %d..%d", quoteName(a.Name), a.Lo, a.Hi)
		if a.Multiple > 1 {
			s += fmt.Sprintf(" multiple %d", a.Multiple)
		}
		if a.Device {
			s += " device"
		}
		return s
	case BufferArg:
		return withFormat(strconv.FormatInt(a.ID, 10), a.Format)
	case ParamArg:
		s := withFormat(strconv.Itoa(a.Slot), a.Format)
		if a.Constant {
			s += " " + constantWord
		}
		return s
	case TableArg:
		return "base64:" + base64.StdEncoding.EncodeToString([]byte(a.Data))
	case RangeArg:
		return strconv.Itoa(a.ID)
	case FieldArg:
		return quoteName(a.Format) + "." + quoteName(a.Field)
	case ReduceArg:
		if a.Op == OpInvalid {
			return fmt.Sprintf("tuple %d", a.N)
		}
		return a.Op.String()
	case StageArg:
		return a.Space.String()
	case ValueArg:
		return strconv.Itoa(a.ID)
	}
	return ""
}

// constantWord marks a param that no kernel of the step writes.
const constantWord = "constant"

func withFormat(id, format string) string {
	if format == "" {
		return id
	}
	return id + " " + quoteName(format)
}

// quoteName leaves plain words bare and quotes everything else.
func quoteName(s string) string {
	if s == "" || isWord(s) {
		if s == "" {
			return `""`
		}
		return s
	}
	return strconv.Quote(s)
}

func isWord(s string) bool {
	for i := range len(s) {
		if !isWordByte(s[i]) {
			return false
		}
	}
	return !(s[0] >= '0' && s[0] <= '9') && s != "multiple" && s != "device" && s != constantWord
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// floatText is the shortest decimal that reads back to the same value of a
// dtype: F16 and BF16 values are F32 values too.
func floatText(dtype DType, v float64) string {
	switch {
	case v != v:
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	return strconv.FormatFloat(v, 'g', -1, floatBits(dtype))
}

// floatBits is the precision in which a dtype's constants are written.
func floatBits(dtype DType) int {
	if dtype == F64 {
		return 64
	}
	return 32
}
