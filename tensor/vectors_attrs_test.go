package tensor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/tensor"
)

// attrs reads the attributes of an operation. It keeps the first mistake: an
// attribute of the wrong type, one that is required but absent, and, in the
// end, one that nobody asked for.
type attrs struct {
	graph  *tensor.Graph // of an operation without inputs
	values map[string]json.RawMessage
	used   map[string]bool
	err    error
}

// finish is the first mistake.
func (a *attrs) finish() error {
	if a.err != nil {
		return a.err
	}
	var unknown []string
	for name := range a.values {
		if !a.used[name] {
			unknown = append(unknown, name)
		}
	}
	if slices.Sort(unknown); len(unknown) > 0 {
		return fmt.Errorf("unknown attributes %q", unknown)
	}
	return nil
}

// lacks reports a value of an attribute that the library does not have.
func (a *attrs) lacks(name string, value any) {
	a.err = errors.Join(a.err, fmt.Errorf("%w: %s = %v", errMissing, name, value))
}

// has reports that an attribute is given.
func (a *attrs) has(name string) bool {
	raw, ok := a.values[name]
	return ok && string(raw) != "null"
}

// attr is a required attribute.
func attr[T any](a *attrs, name string) (v T) {
	if !a.has(name) {
		a.err = errors.Join(a.err, fmt.Errorf("attribute %q is absent", name))
		return v
	}
	return attrOr(a, name, v)
}

// attrOr is an attribute with a default.
func attrOr[T any](a *attrs, name string, otherwise T) T {
	a.used[name] = true
	if !a.has(name) {
		return otherwise
	}
	var v T
	if err := json.Unmarshal(a.values[name], &v); err != nil {
		a.err = errors.Join(a.err, fmt.Errorf("attribute %q: %w", name, err))
	}
	return v
}

// integer and integers are required.
func (a *attrs) integer(name string) int    { return attr[int](a, name) }
func (a *attrs) integers(name string) []int { return attr[[]int](a, name) }

// axes is an optional list of axes; none means all.
func (a *attrs) axes() []int { return attrOr[[]int](a, "axis", nil) }

// keep is the optional attribute keepdim.
func (a *attrs) keep() bool { return attrOr(a, "keepdim", false) }

func (a *attrs) float(name string) float64 { return float64(attr[number](a, name)) }

func (a *attrs) floatOr(name string, otherwise float64) float64 {
	return float64(attrOr(a, name, number(otherwise)))
}

// dtypeOr is an optional dtype.
func (a *attrs) dtypeOr(name string, otherwise ir.DType) ir.DType {
	text := attrOr(a, name, "")
	if text == "" {
		return otherwise
	}
	dtype, ok := vectorTypes[text]
	if !ok {
		a.lacks(name, text)
		return otherwise
	}
	return dtype
}
