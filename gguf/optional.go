package gguf

import (
	"errors"
	"fmt"
	"math"
)

// Optional reads keys that may be absent: its getters report that as ok false
// rather than as an error. A value of the wrong type is an error still. Lists of
// numbers come in the 32 bits that vocabularies need.
type Optional struct{ file *File }

// Optional returns a view of the metadata for keys that may be absent.
func (f *File) Optional() Optional { return Optional{f} }

// String returns a string.
func (o Optional) String(key string) (string, bool, error) { return optional(o, key, Value.Str) }

// Uint returns an integer of at least 0.
func (o Optional) Uint(key string) (uint64, bool, error) { return optional(o, key, Value.Uint) }

// Bool returns a bool.
func (o Optional) Bool(key string) (bool, bool, error) { return optional(o, key, Value.Bool) }

// Strings returns an array of strings.
func (o Optional) Strings(key string) ([]string, bool, error) {
	return optional(o, key, Value.Strings)
}

// Ints returns an array of integers that fit 32 bits.
func (o Optional) Ints(key string) ([]int32, bool, error) {
	return optional(o, key, func(v Value) ([]int32, error) {
		return elements(v, func(x Value) (int32, error) {
			n, err := x.Int()
			if err == nil && int64(int32(n)) != n {
				err = fmt.Errorf("value is %d, want %d to %d", n, math.MinInt32, math.MaxInt32)
			}
			return int32(n), err
		}, "integers")
	})
}

// Floats returns an array of floats, rounded to 32 bits.
func (o Optional) Floats(key string) ([]float32, bool, error) {
	return optional(o, key, func(v Value) ([]float32, error) {
		return elements(v, func(x Value) (float32, error) {
			n, err := x.Float()
			return float32(n), err
		}, "floats")
	})
}

func optional[T any](o Optional, key string, decode func(Value) (T, error)) (value T, ok bool, err error) {
	value, err = get(o.file, key, decode)
	if errors.Is(err, ErrMissing) {
		return value, false, nil
	}
	return value, err == nil, err
}
