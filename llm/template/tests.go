package template

import (
	"errors"
	"fmt"
)

// test is what stands after "is".
type test func(r *run, v Value, a arguments) (bool, error)

// tests by name; filled by init, as some of them look at it.
var tests map[string]test

// kind is a test of a value alone.
func kind(is func(Value) bool) test {
	return func(_ *run, v Value, _ arguments) (bool, error) { return is(v), nil }
}

// comparison is a test by an operator.
func comparison(operator string) test {
	return func(r *run, v Value, a arguments) (bool, error) {
		other, ok := a.get(0, "other")
		if !ok {
			return false, errors.New("the argument is missing")
		}
		return r.compare(operator, v, other)
	}
}

func is[T any](v Value) bool {
	_, ok := v.(T)
	return ok
}

func init() {
	equal, unequal := comparison("=="), comparison("!=")
	less, lessEqual, greater, greaterEqual := comparison("<"), comparison("<="), comparison(">"), comparison(">=")
	tests = map[string]test{
		"defined":   kind(func(v Value) bool { return !is[undefined](v) }),
		"undefined": kind(is[undefined]),
		"none":      kind(func(v Value) bool { return v == nil }),
		"string":    kind(is[Text]),
		"mapping":   kind(is[*Dict]),
		"number":    kind(func(v Value) bool { _, _, _, ok := number(v); return ok }),
		"integer":   kind(is[int64]),
		"float":     kind(is[float64]),
		"boolean":   kind(is[bool]),
		"true":      kind(func(v Value) bool { return v == true }),
		"false":     kind(func(v Value) bool { return v == false }),
		"callable":  kind(func(v Value) bool { return is[*function](v) || is[undefined](v) }), // Jinja2's undefined values can be called, to fail
		"iterable":  kind(iterable),
		"sequence":  kind(iterable),
		"escaped":   kind(func(v Value) bool { t, ok := v.(Text); return ok && t.safe }),
		"upper":     caseTest("isupper"),
		"lower":     caseTest("islower"),
		"sameas":    sameAs,
		"in":        isIn,
		"even":      divides(2, 0),
		"odd":       divides(2, 1),
		"divisibleby": func(r *run, v Value, a arguments) (bool, error) {
			n, err := intArgument(a, 0, "num", 0)
			if err == nil && n == 0 {
				err = errDivision
			}
			if err != nil {
				return false, err
			}
			return divides(n, 0)(r, v, a)
		},
		"filter": func(_ *run, v Value, _ arguments) (bool, error) {
			t, ok := v.(Text)
			return ok && filters[t.s] != nil, nil
		},
		"test": func(_ *run, v Value, _ arguments) (bool, error) {
			t, ok := v.(Text)
			return ok && tests[t.s] != nil, nil
		},
		"==": equal, "eq": equal, "equalto": equal, "!=": unequal, "ne": unequal,
		"<": less, "lt": less, "lessthan": less, "<=": lessEqual, "le": lessEqual,
		">": greater, "gt": greater, "greaterthan": greater, ">=": greaterEqual, "ge": greaterEqual,
	}
}

func iterable(v Value) bool {
	switch v.(type) {
	case Text, *List, *Dict, undefined:
		return true
	}
	return false
}

func caseTest(name string) test {
	return func(r *run, v Value, a arguments) (bool, error) {
		t, err := r.text(v)
		if err != nil {
			return false, err
		}
		yes, err := textMethods[name](r, t, a)
		return yes == true, err
	}
}

// sameAs is Python's "is": the same list or mapping; of other types, an equal value of
// the same type.
func sameAs(_ *run, v Value, a arguments) (bool, error) {
	other, ok := a.get(0, "other")
	if !ok {
		return false, errors.New("the argument is missing")
	}
	if t, ok := v.(Text); ok {
		u, ok := other.(Text)
		return ok && t.s == u.s, nil
	}
	if is[Text](other) {
		return false, nil
	}
	return v == other, nil
}

func isIn(r *run, v Value, a arguments) (bool, error) {
	whole, ok := a.get(0, "seq")
	if !ok {
		return false, errors.New("the argument is missing")
	}
	return r.contains(whole, v)
}

// divides tells whether a value leaves a remainder when divided by n.
func divides(n, remainder int64) test {
	return func(_ *run, v Value, _ arguments) (bool, error) {
		f, i, isInt, ok := number(v)
		switch {
		case !ok:
			return false, wrongType(v, fmt.Sprintf("got %s, want a number", typeName(v)))
		case !isInt:
			m, err := floats("%", f, float64(n))
			return m == float64(remainder), err
		}
		m, err := integers("%", i, n)
		return m == remainder, err
	}
}
