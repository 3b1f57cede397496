package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ValueType is the type of a metadata value, numbered as in the file.
type ValueType uint32

// Metadata value types.
const (
	Uint8Value   ValueType = 0
	Int8Value    ValueType = 1
	Uint16Value  ValueType = 2
	Int16Value   ValueType = 3
	Uint32Value  ValueType = 4
	Int32Value   ValueType = 5
	Float32Value ValueType = 6
	BoolValue    ValueType = 7
	StringValue  ValueType = 8
	ArrayValue   ValueType = 9
	Uint64Value  ValueType = 10
	Int64Value   ValueType = 11
	Float64Value ValueType = 12
)

// valueKind groups value types by how they convert.
type valueKind uint8

const (
	unsignedKind valueKind = iota
	signedKind
	floatKind
	boolKind
	stringKind
	arrayKind
)

// valueTable is indexed by ValueType. bytes is the size in the file; for
// strings and arrays, the smallest size.
var valueTable = [...]struct {
	name  string
	kind  valueKind
	bytes int
}{
	Uint8Value:   {"uint8", unsignedKind, 1},
	Int8Value:    {"int8", signedKind, 1},
	Uint16Value:  {"uint16", unsignedKind, 2},
	Int16Value:   {"int16", signedKind, 2},
	Uint32Value:  {"uint32", unsignedKind, 4},
	Int32Value:   {"int32", signedKind, 4},
	Float32Value: {"float32", floatKind, 4},
	BoolValue:    {"bool", boolKind, 1},
	StringValue:  {"string", stringKind, 8},
	ArrayValue:   {"array", arrayKind, 12},
	Uint64Value:  {"uint64", unsignedKind, 8},
	Int64Value:   {"int64", signedKind, 8},
	Float64Value: {"float64", floatKind, 8},
}

func (t ValueType) valid() bool { return uint64(t) < uint64(len(valueTable)) }

// String returns the type's name, as in "uint32".
func (t ValueType) String() string {
	if !t.valid() {
		return fmt.Sprintf("valuetype(%d)", uint32(t))
	}
	return valueTable[t].name
}

// Value is one metadata value. It keeps the bytes of the file and decodes them
// when asked, so an unused vocabulary of 150,000 strings costs nothing. A Value
// is usable until its File is closed; what its methods return stays valid.
//
// The methods widen but never lose: Uint takes any integer type that holds a
// number of at least 0, Float takes both float types and integers that a
// float64 holds exactly.
type Value struct {
	typ  ValueType
	elem ValueType // of an array
	n    int       // elements of an array
	raw  []byte    // a scalar, the bytes of a string, or the elements of an array
}

// Type returns the value's type.
func (v Value) Type() ValueType { return v.typ }

// Elem returns the type of an array's elements.
func (v Value) Elem() ValueType { return v.elem }

// Len returns the number of elements of an array, or of bytes of a string.
func (v Value) Len() int {
	if v.typ == StringValue {
		return len(v.raw)
	}
	return v.n
}

// describe says what a value is, for errors: its type and what it holds.
func (v Value) describe() string {
	if v.typ == ArrayValue {
		return fmt.Sprintf("an array of %d %s", v.n, v.elem)
	}
	return v.typ.String() + " " + v.String()
}

func (v Value) mismatch(want string) error {
	return fmt.Errorf("value is %s, want %s", v.describe(), want)
}

// bits returns a scalar's bytes as a number, sign-extended for signed types.
func (v Value) bits() uint64 { return scalarBits(v.typ, v.raw) }

func scalarBits(t ValueType, b []byte) uint64 {
	switch t {
	case Uint8Value, BoolValue:
		return uint64(b[0])
	case Int8Value:
		return uint64(int8(b[0]))
	case Uint16Value:
		return uint64(binary.LittleEndian.Uint16(b))
	case Int16Value:
		return uint64(int16(binary.LittleEndian.Uint16(b)))
	case Uint32Value, Float32Value:
		return uint64(binary.LittleEndian.Uint32(b))
	case Int32Value:
		return uint64(int32(binary.LittleEndian.Uint32(b)))
	}
	return binary.LittleEndian.Uint64(b)
}

// Uint returns an integer value of at least 0.
func (v Value) Uint() (uint64, error) {
	switch valueTable[v.typ].kind {
	case unsignedKind:
		return v.bits(), nil
	case signedKind:
		if x := int64(v.bits()); x >= 0 {
			return uint64(x), nil
		}
	}
	return 0, v.mismatch("an integer of at least 0")
}

// Int returns an integer value that fits 64 bits with sign.
func (v Value) Int() (int64, error) {
	switch valueTable[v.typ].kind {
	case signedKind:
		return int64(v.bits()), nil
	case unsignedKind:
		if x := v.bits(); x <= math.MaxInt64 {
			return int64(x), nil
		}
	}
	return 0, v.mismatch("an integer below 2^63")
}

// Float returns a float value, or an integer of up to 53 bits.
func (v Value) Float() (float64, error) {
	const exact = 1 << 53
	switch valueTable[v.typ].kind {
	case floatKind:
		if v.typ == Float32Value {
			return float64(math.Float32frombits(uint32(v.bits()))), nil
		}
		return math.Float64frombits(v.bits()), nil
	case unsignedKind:
		if x := v.bits(); x <= exact {
			return float64(x), nil
		}
	case signedKind:
		if x := int64(v.bits()); x >= -exact && x <= exact {
			return float64(x), nil
		}
	}
	return 0, v.mismatch("a float")
}

// Bool returns a bool value.
func (v Value) Bool() (bool, error) {
	if v.typ != BoolValue {
		return false, v.mismatch("a bool")
	}
	return v.raw[0] != 0, nil
}

// Str returns a copy of a string value. It need not be UTF-8.
func (v Value) Str() (string, error) {
	if v.typ != StringValue {
		return "", v.mismatch("a string")
	}
	return string(v.raw), nil
}

// Strings returns the elements of an array of strings. They share one copy of
// the array's bytes: two allocations, whatever the number of elements.
func (v Value) Strings() ([]string, error) {
	if v.typ != ArrayValue || (v.elem != StringValue && v.n > 0) {
		return nil, v.mismatch("an array of strings")
	}
	if v.n == 0 {
		return nil, nil
	}
	list := make([]string, v.n)
	all := string(v.raw)
	pos := 0
	for i := range list {
		n := int(binary.LittleEndian.Uint64(v.raw[pos:])) // checked by parse
		list[i] = all[pos+8 : pos+8+n]
		pos += 8 + n
	}
	return list, nil
}

// Values returns the elements of any array, arrays of arrays included.
func (v Value) Values() ([]Value, error) {
	if v.typ != ArrayValue {
		return nil, v.mismatch("an array")
	}
	list := make([]Value, 0, v.n)
	c := cursor{data: v.raw, limit: len(v.raw)}
	for range v.n {
		list = append(list, c.value(v.elem, 0))
	}
	if c.err != nil { // parse has walked the same bytes
		return nil, c.err
	}
	return list, nil
}

// Uints returns the elements of an array of integers of at least 0.
func (v Value) Uints() ([]uint64, error) { return elements(v, Value.Uint, "integers") }

// Ints returns the elements of an array of integers.
func (v Value) Ints() ([]int64, error) { return elements(v, Value.Int, "integers") }

// Floats returns the elements of an array of floats.
func (v Value) Floats() ([]float64, error) { return elements(v, Value.Float, "floats") }

// Bools returns the elements of an array of bools.
func (v Value) Bools() ([]bool, error) { return elements(v, Value.Bool, "bools") }

// elements decodes an array of scalars of one size.
func elements[T any](v Value, decode func(Value) (T, error), want string) ([]T, error) {
	if v.typ != ArrayValue || valueTable[v.elem].kind >= stringKind && v.n > 0 {
		return nil, v.mismatch("an array of " + want)
	}
	size := valueTable[v.elem].bytes
	list := make([]T, v.n)
	for i := range list {
		x, err := decode(Value{typ: v.elem, raw: v.raw[i*size : (i+1)*size]})
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		list[i] = x
	}
	return list, nil
}

// String returns a short, printable form: strings quoted and cut, arrays with
// their first few elements.
func (v Value) String() string {
	switch valueTable[v.typ].kind {
	case unsignedKind:
		return strconv.FormatUint(v.bits(), 10)
	case signedKind:
		return strconv.FormatInt(int64(v.bits()), 10)
	case floatKind:
		x, _ := v.Float()
		width := valueTable[v.typ].bytes * 8
		return strconv.FormatFloat(x, 'g', -1, width)
	case boolKind:
		return strconv.FormatBool(v.raw[0] != 0)
	case stringKind:
		const enough = 4 * quoteLimit // no need to copy a template of kilobytes
		return Quote(string(v.raw[:min(len(v.raw), enough)]))
	}
	return v.preview()
}

// preview prints an array as `[3]string{"a", "b", "c"}`, cut after some
// elements; arrays of arrays print their size only.
func (v Value) preview() string {
	const shown = 6
	var b strings.Builder
	fmt.Fprintf(&b, "[%d]%s", v.n, v.elem)
	if v.elem == ArrayValue || v.n == 0 {
		return b.String()
	}
	b.WriteByte('{')
	c := cursor{data: v.raw, limit: len(v.raw)}
	for i := range min(v.n, shown) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(c.value(v.elem, 0).String())
	}
	if v.n > shown {
		b.WriteString(", ...")
	}
	b.WriteByte('}')
	return b.String()
}
