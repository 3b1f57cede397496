package template

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
)

// operate is a binary operator other than and, or and comparisons.
func (r *run) operate(operator string, a, b Value) (Value, error) {
	if operator == "~" {
		return r.concat(a, b)
	}
	for _, v := range []Value{a, b} {
		if u, ok := v.(undefined); ok {
			return nil, errors.New(u.text)
		}
	}
	if f, i, isInt, ok := number(a); ok {
		if g, j, isInt2, ok := number(b); ok {
			if isInt && isInt2 {
				return integers(operator, i, j)
			}
			return floats(operator, f, g)
		}
	}
	switch operator {
	case "+":
		return r.add(a, b)
	case "*":
		return r.repeat(a, b)
	case "%":
		if format, ok := a.(Text); ok {
			return r.format(format, b)
		}
	}
	return nil, fmt.Errorf("unsupported operand type(s) for %s: '%s' and '%s'", operator, typeName(a), typeName(b))
}

func (r *run) concat(a, b Value) (Value, error) {
	left, err := r.text(a)
	if err != nil {
		return nil, err
	}
	right, err := r.text(b)
	if err != nil {
		return nil, err
	}
	left.safe, right.safe = false, false // "~" makes no HTML safe
	return r.join(left, right)
}

// join puts texts together; beside HTML that is safe, others are escaped.
func (r *run) join(parts ...Text) (Text, error) {
	safe, n := false, 0
	for _, t := range parts {
		safe = safe || t.safe
		n += len(t.s)
	}
	if err := r.spendText(n); err != nil {
		return Text{}, err
	}
	var b builder
	for _, t := range parts {
		if safe {
			t = escape(t)
		}
		b.add(t)
	}
	out := b.text()
	out.safe = safe
	return out, r.spend(len(out.outside))
}

func (r *run) add(a, b Value) (Value, error) {
	switch a := a.(type) {
	case Text:
		if b, ok := b.(Text); ok {
			return r.join(a, b)
		}
		return nil, fmt.Errorf("can only concatenate str (not %q) to str", typeName(b))
	case *List:
		if b, ok := b.(*List); ok && a.tuple == b.tuple {
			out := &List{tuple: a.tuple, own: true}
			if err := r.spend(len(a.items) + len(b.items)); err != nil {
				return nil, err
			}
			out.items = append(append(out.items, a.items...), b.items...)
			return out, nil
		}
		return nil, fmt.Errorf("can only concatenate %s (not %q) to %s", typeName(a), typeName(b), typeName(a))
	}
	return nil, fmt.Errorf("unsupported operand type(s) for +: '%s' and '%s'", typeName(a), typeName(b))
}

// repeat is a text or list times a number, in either order.
func (r *run) repeat(a, b Value) (Value, error) {
	_, n, isInt, ok := number(b)
	if !ok {
		a, b = b, a
		_, n, isInt, ok = number(b)
	}
	n = max(n, 0)
	switch v := a.(type) {
	case Text:
		if !ok || !isInt {
			break
		}
		if n > 0 && int64(len(v.s)) > int64(r.limits.Output)/n {
			return nil, fmt.Errorf("a text of %d bytes %d times, want at most %d bytes", len(v.s), n, r.limits.Output)
		}
		var out builder
		for range n {
			if err := r.spend(1); err != nil {
				return nil, err
			}
			out.add(v)
		}
		return out.text(), nil
	case *List:
		if !ok || !isInt {
			break
		}
		out := &List{tuple: v.tuple, own: true}
		for range n {
			if err := r.spend(1 + len(v.items)); err != nil {
				return nil, err
			}
			out.items = append(out.items, v.items...)
		}
		return out, nil
	}
	return nil, fmt.Errorf("can't multiply '%s' by '%s'", typeName(a), typeName(b))
}

var (
	errDivision = errors.New("division by zero")
	errOverflow = errors.New("integer overflow: a result takes more than 64 bits")
)

func integers(operator string, a, b int64) (Value, error) {
	switch operator {
	case "+":
		if sum := a + b; (sum > a) == (b > 0) {
			return sum, nil
		}
		return nil, errOverflow
	case "-":
		if difference := a - b; (difference < a) == (b > 0) {
			return difference, nil
		}
		return nil, errOverflow
	case "*":
		if product := a * b; a == 0 || product/a == b && !(a == -1 && b == math.MinInt64) {
			return product, nil
		}
		return nil, errOverflow
	case "**":
		return power(a, b)
	}
	if b == 0 {
		return nil, errDivision
	}
	switch operator {
	case "/":
		return float64(a) / float64(b), nil
	case "//":
		q := a / b
		if a%b != 0 && (a < 0) != (b < 0) {
			q--
		}
		return q, nil
	}
	m := a % b
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	return m, nil
}

func power(a, b int64) (Value, error) {
	if b < 0 {
		return floats("**", float64(a), float64(b))
	}
	result := Value(int64(1))
	for range b {
		var err error
		if result, err = integers("*", result.(int64), a); err != nil {
			return nil, err
		}
		if r := result.(int64); r == a && (a == 0 || a == 1) {
			return result, nil
		} else if a == -1 {
			return 1 - 2*(b%2), nil
		}
	}
	return result, nil
}

func floats(operator string, a, b float64) (Value, error) {
	switch operator {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "**":
		if a == 0 && b < 0 {
			return nil, errDivision
		}
		return math.Pow(a, b), nil
	}
	if b == 0 {
		return nil, errDivision
	}
	switch operator {
	case "/":
		return a / b, nil
	case "//":
		return math.Floor(a / b), nil
	}
	m := math.Mod(a, b)
	if m == 0 {
		return math.Copysign(0, b), nil
	}
	if (m < 0) != (b < 0) {
		m += b
	}
	return m, nil
}

// compare is a comparison operator.
func (r *run) compare(operator string, a, b Value) (bool, error) {
	switch operator {
	case "==", "!=":
		same, err := r.equal(a, b, 0)
		return same == (operator == "=="), err
	case "in", "not in":
		found, err := r.contains(b, a)
		return found == (operator == "in"), err
	}
	order, err := r.order(operator, a, b, 0)
	if err != nil {
		return false, err
	}
	switch operator {
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	}
	return order >= 0, nil
}

func (r *run) equal(a, b Value, depth int) (bool, error) {
	if err := errors.Join(r.spend(1), r.deeper(depth)); err != nil {
		return false, err
	}
	if f, i, isInt, ok := number(a); ok {
		g, j, isInt2, ok := number(b)
		if isInt && isInt2 {
			return ok && i == j, nil
		}
		return ok && f == g, nil
	}
	switch a := a.(type) {
	case nil:
		return b == nil, nil
	case undefined:
		_, ok := b.(undefined)
		return ok, nil
	case Text:
		b, ok := b.(Text)
		return ok && a.s == b.s, r.spendText(len(a.s))
	case *List:
		b, ok := b.(*List)
		if !ok || a.tuple != b.tuple || len(a.items) != len(b.items) {
			return false, nil
		}
		for i := range a.items {
			if same, err := r.equal(a.items[i], b.items[i], depth+1); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	case *Dict:
		return r.equalDicts(a, b, depth)
	}
	return a == b, nil
}

func (r *run) equalDicts(a *Dict, other Value, depth int) (bool, error) {
	b, ok := other.(*Dict)
	if !ok || a.Len() != b.Len() {
		return false, nil
	}
	for i, key := range a.keys {
		v, ok := b.get(key)
		if !ok {
			return false, nil
		}
		if same, err := r.equal(a.values[i], v, depth+1); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// order compares numbers, texts, and lists of them.
func (r *run) order(operator string, a, b Value, depth int) (int, error) {
	if err := errors.Join(r.spend(1), r.deeper(depth)); err != nil {
		return 0, err
	}
	if f, i, isInt, ok := number(a); ok {
		if g, j, isInt2, ok := number(b); ok {
			if isInt && isInt2 {
				return cmp.Compare(i, j), nil
			}
			return cmp.Compare(f, g), nil
		}
	}
	if a, ok := a.(Text); ok {
		if b, ok := b.(Text); ok {
			return strings.Compare(a.s, b.s), r.spendText(min(len(a.s), len(b.s)))
		}
	}
	if a, ok := a.(*List); ok {
		if b, ok := b.(*List); ok && a.tuple == b.tuple {
			for i := range min(len(a.items), len(b.items)) {
				if same, err := r.equal(a.items[i], b.items[i], depth+1); same || err != nil {
					if err != nil {
						return 0, err
					}
					continue // of equal items, none is asked which comes first
				}
				return r.order(operator, a.items[i], b.items[i], depth+1)
			}
			return cmp.Compare(len(a.items), len(b.items)), nil
		}
	}
	for _, v := range []Value{a, b} {
		if u, ok := v.(undefined); ok {
			return 0, errors.New(u.text)
		}
	}
	return 0, fmt.Errorf("'%s' not supported between instances of '%s' and '%s'", operator, typeName(a), typeName(b))
}

// contains tells whether a value is in another one.
func (r *run) contains(whole, part Value) (bool, error) {
	switch w := whole.(type) {
	case undefined:
		return false, nil
	case Text:
		p, ok := part.(Text)
		if !ok {
			return false, wrongType(part, "'in <string>' requires string as left operand, not "+typeName(part))
		}
		return strings.Contains(w.s, p.s), r.spendText(len(w.s))
	case *List:
		for _, item := range w.items {
			if same, err := r.equal(item, part, 0); same || err != nil {
				return same, err
			}
		}
		return false, nil
	case *Dict:
		_, ok := w.get(part)
		return ok, nil
	}
	return false, fmt.Errorf("argument of type '%s' is not iterable", typeName(whole))
}
