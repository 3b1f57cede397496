package llm

import (
	"strings"

	"tgc/gguf"
)

// reader reads hyperparameters, keeps the first error and knows which keys were
// asked for.
type reader struct {
	file   *gguf.File
	prefix string
	layers int             // how long per-layer lists are; 0 until it is known
	asked  map[string]bool // keys, without the prefix
	err    error
}

func newReader(f *gguf.File, architecture string) *reader {
	return &reader{file: f, prefix: architecture + ".", asked: make(map[string]bool)}
}

// has reports whether the file has a key, which then counts as asked for.
func (r *reader) has(key string) bool {
	r.asked[key] = true
	return r.file.Has(r.prefix + key)
}

// fail keeps an error if it is the first.
func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) errorf(key, format string, args ...any) {
	r.fail(r.file.KeyErrorf(r.prefix+key, format, args...))
}

// count reads a number in 1..limit; it is 1 after an error.
func (r *reader) count(key string, limit int) int {
	r.asked[key] = true
	v, err := r.scalar(key)
	if err == nil && (v < 1 || v > int64(limit)) {
		err = r.file.KeyErrorf(r.prefix+key, "is %d, want 1 to %d", v, limit)
	}
	if err != nil {
		r.fail(err)
		return 1
	}
	return int(v)
}

func (r *reader) countOr(key string, missing, limit int) int {
	if !r.has(key) {
		return missing
	}
	return r.count(key, limit)
}

// number reads a number in 0..limit, which may be absent.
func (r *reader) number(key string, missing, limit int64) int64 {
	if !r.has(key) {
		return missing
	}
	v, err := r.scalar(key)
	if err == nil && (v < 0 || v > limit) {
		err = r.file.KeyErrorf(r.prefix+key, "is %d, want 0 to %d", v, limit)
	}
	if err != nil {
		r.fail(err)
		return missing
	}
	return v
}

// flags reads a list of a truth value a layer; ok is false where the key is absent or
// no list.
func (r *reader) flags(key string) (list []bool, ok bool) {
	if !r.has(key) {
		return nil, false
	}
	list, err := r.file.Bools(r.prefix + key)
	if err != nil {
		numbers, err := r.file.Ints(r.prefix + key)
		if err != nil {
			return nil, false
		}
		list = nil
		for _, v := range numbers {
			list = append(list, v != 0)
		}
	}
	if len(list) != r.layers {
		r.errorf(key, "holds %d values, want one for each of the %d layers", len(list), r.layers)
		return make([]bool, r.layers), true
	}
	return list, true
}

// scalar reads a number, or a per-layer list that holds one number throughout.
func (r *reader) scalar(key string) (int64, error) {
	v, err := r.file.Int(r.prefix + key)
	if err == nil {
		return v, nil
	}
	list, listErr := r.file.Ints(r.prefix + key)
	if listErr != nil || len(list) == 0 {
		return 0, err
	}
	if len(list) != r.layers {
		return 0, r.file.KeyErrorf(r.prefix+key, "holds %d numbers, want one number or one for each of the %d layers", len(list), r.layers)
	}
	for _, item := range list {
		if item != list[0] {
			return 0, r.file.KeyErrorf(r.prefix+key, "differs between layers (%d and %d), want one number", list[0], item)
		}
	}
	return list[0], nil
}

// positive reads a number above 0 and at most limit.
func (r *reader) positive(key string, limit float64) float64 {
	r.asked[key] = true
	v, err := r.file.Float(r.prefix + key)
	if err == nil && !(v > 0 && v <= limit) {
		err = r.file.KeyErrorf(r.prefix+key, "is %v, want a number above 0 and up to %v", v, limit)
	}
	r.fail(err)
	return v
}

func (r *reader) positiveOr(key string, missing, limit float64) float64 {
	if !r.has(key) {
		return missing
	}
	return r.positive(key, limit)
}

// nonzeroOr reads a number above 0, where 0 is as if the key were absent.
func (r *reader) nonzeroOr(key string, missing, limit float64) float64 {
	if !r.has(key) {
		return missing
	}
	if v, err := r.file.Float(r.prefix + key); err == nil && v == 0 {
		return missing
	}
	return r.positive(key, limit)
}

// text reads a string, which may be absent.
func (r *reader) text(key, missing string) string {
	r.asked[key] = true
	v, err := r.file.StringOr(r.prefix+key, missing)
	r.fail(err)
	return v
}

// unknown names a key that changes what the model computes and that was not asked
// for: to go on without it would be to compute something else.
func (r *reader) unknown() error {
	for key, value := range r.file.Metadata() {
		name, ok := strings.CutPrefix(key, r.prefix)
		if !ok || r.asked[name] || !changesResult(name, value) {
			continue
		}
		return r.file.KeyErrorf(key, "is %s, which changes what the model computes in a way that tgc does not know for this architecture", value)
	}
	return nil
}
