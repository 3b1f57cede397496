package gguf

import "errors"

// The getters below decode the value of a key. A missing key is an error that
// wraps ErrMissing; the Or forms return a default for it, but still report a
// value of the wrong type.

// Has reports whether the file has a key.
func (f *File) Has(key string) bool {
	_, ok := f.index[key]
	return ok
}

// Uint returns an integer of at least 0.
func (f *File) Uint(key string) (uint64, error) { return get(f, key, Value.Uint) }

// UintOr is Uint with a default.
func (f *File) UintOr(key string, missing uint64) (uint64, error) {
	return getOr(f, key, Value.Uint, missing)
}

// Int returns an integer.
func (f *File) Int(key string) (int64, error) { return get(f, key, Value.Int) }

// Float returns a float.
func (f *File) Float(key string) (float64, error) { return get(f, key, Value.Float) }

// FloatOr is Float with a default.
func (f *File) FloatOr(key string, missing float64) (float64, error) {
	return getOr(f, key, Value.Float, missing)
}

// Bool returns a bool.
func (f *File) Bool(key string) (bool, error) { return get(f, key, Value.Bool) }

// String returns a string, which need not be UTF-8.
func (f *File) String(key string) (string, error) { return get(f, key, Value.Str) }

// StringOr is String with a default.
func (f *File) StringOr(key, missing string) (string, error) {
	return getOr(f, key, Value.Str, missing)
}

// Strings returns an array of strings.
func (f *File) Strings(key string) ([]string, error) { return get(f, key, Value.Strings) }

// Uints returns an array of integers of at least 0.
func (f *File) Uints(key string) ([]uint64, error) { return get(f, key, Value.Uints) }

// Ints returns an array of integers.
func (f *File) Ints(key string) ([]int64, error) { return get(f, key, Value.Ints) }

// Floats returns an array of floats.
func (f *File) Floats(key string) ([]float64, error) { return get(f, key, Value.Floats) }

// Bools returns an array of bools.
func (f *File) Bools(key string) ([]bool, error) { return get(f, key, Value.Bools) }

func get[T any](f *File, key string, decode func(Value) (T, error)) (T, error) {
	v, ok := f.Lookup(key)
	if !ok {
		var zero T
		return zero, f.keyError(key, ErrMissing)
	}
	x, err := decode(v)
	if err != nil {
		return x, f.keyError(key, err)
	}
	return x, nil
}

func getOr[T any](f *File, key string, decode func(Value) (T, error), missing T) (T, error) {
	x, err := get(f, key, decode)
	if errors.Is(err, ErrMissing) {
		return missing, nil
	}
	return x, err
}
