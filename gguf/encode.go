package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
)

// goKinds maps kinds of Go values to metadata types. Plain int and uint are
// left out: their size is not a choice the caller has made.
var goKinds = map[reflect.Kind]ValueType{
	reflect.Uint8:   Uint8Value,
	reflect.Int8:    Int8Value,
	reflect.Uint16:  Uint16Value,
	reflect.Int16:   Int16Value,
	reflect.Uint32:  Uint32Value,
	reflect.Int32:   Int32Value,
	reflect.Float32: Float32Value,
	reflect.Bool:    BoolValue,
	reflect.String:  StringValue,
	reflect.Slice:   ArrayValue,
	reflect.Uint64:  Uint64Value,
	reflect.Int64:   Int64Value,
	reflect.Float64: Float64Value,
}

// MakeValue encodes a Go value: a bool, string, float or integer of a named
// size, a slice of one of these, or a slice of slices.
func MakeValue(x any) (Value, error) {
	v := reflect.ValueOf(x)
	if !v.IsValid() {
		return Value{}, fmt.Errorf("no value")
	}
	t, ok := goKinds[v.Kind()]
	if !ok {
		return Value{}, fmt.Errorf("type %s of Go has no metadata type; want a bool, a string, a number with a size, or slices of them", v.Type())
	}
	switch t {
	case StringValue:
		return Value{typ: t, raw: []byte(v.String())}, nil
	case ArrayValue:
		return makeArray(v)
	}
	return Value{typ: t, raw: appendScalar(nil, t, v)}, nil
}

func makeArray(v reflect.Value) (Value, error) {
	elem, ok := goKinds[v.Type().Elem().Kind()]
	if !ok {
		return Value{}, fmt.Errorf("type %s of Go has no metadata type", v.Type())
	}
	out := Value{typ: ArrayValue, elem: elem, n: v.Len()}
	for i := range v.Len() {
		if valueTable[elem].kind < stringKind {
			out.raw = appendScalar(out.raw, elem, v.Index(i))
			continue
		}
		x, err := MakeValue(v.Index(i).Interface())
		if err != nil {
			return Value{}, err
		}
		out.raw = x.appendTo(out.raw)
	}
	return out, nil
}

// appendScalar appends the bytes of a scalar of type t.
func appendScalar(b []byte, t ValueType, v reflect.Value) []byte {
	var x uint64
	switch valueTable[t].kind {
	case unsignedKind:
		x = v.Uint()
	case signedKind:
		x = uint64(v.Int())
	case boolKind:
		if v.Bool() {
			x = 1
		}
	case floatKind:
		x = math.Float64bits(v.Float())
		if t == Float32Value {
			x = uint64(math.Float32bits(float32(v.Float())))
		}
	}
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], x)
	return append(b, word[:valueTable[t].bytes]...)
}

// appendTo appends the value as a file holds it after its type.
func (v Value) appendTo(b []byte) []byte {
	switch v.typ {
	case StringValue:
		return appendString(b, v.raw)
	case ArrayValue:
		b = binary.LittleEndian.AppendUint32(b, uint32(v.elem))
		b = binary.LittleEndian.AppendUint64(b, uint64(v.n))
	}
	return append(b, v.raw...)
}

func appendString[S string | []byte](b []byte, s S) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}
