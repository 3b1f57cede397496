package template

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

func (n *constant) eval(*run, *scope) (Value, error) { return n.value, nil }

func (n *nameExpression) eval(_ *run, s *scope) (Value, error) {
	if v, ok := s.get(n.name); ok {
		return v, nil
	}
	return undefined{fmt.Sprintf("'%s' is undefined", n.name)}, nil
}

func (n *listExpression) eval(r *run, s *scope) (Value, error) {
	items, err := r.evalAll(n.items, s)
	return &List{items: items, tuple: n.tuple, own: true}, err
}

func (r *run) evalAll(list []expression, s *scope) ([]Value, error) {
	values := make([]Value, len(list))
	for i, e := range list {
		v, err := r.eval(e, s)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

func (n *dictExpression) eval(r *run, s *scope) (Value, error) {
	d := NewDict()
	d.own = true
	for i := range n.keys {
		key, err := r.eval(n.keys[i], s)
		if err != nil {
			return nil, err
		}
		value, err := r.eval(n.values[i], s)
		if err != nil {
			return nil, err
		}
		if !d.set(key, value) {
			return nil, fmt.Errorf("unhashable type: '%s'", typeName(key))
		}
	}
	return d, nil
}

func (n *unaryExpression) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(n.value, s)
	if err != nil {
		return nil, err
	}
	if n.operator == "not" {
		return !truth(v), nil
	}
	f, i, isInt, ok := number(v)
	switch {
	case !ok:
		return nil, wrongType(v, fmt.Sprintf("bad operand type for unary %s: '%s'", n.operator, typeName(v)))
	case n.operator == "+" && isInt:
		return i, nil
	case n.operator == "+":
		return f, nil
	case isInt:
		return -i, nil
	}
	return -f, nil
}

func (n *binaryExpression) eval(r *run, s *scope) (Value, error) {
	left, err := r.eval(n.left, s)
	if err != nil {
		return nil, err
	}
	if n.operator == "and" && !truth(left) || n.operator == "or" && truth(left) {
		return left, nil
	}
	right, err := r.eval(n.right, s)
	if err != nil || n.operator == "and" || n.operator == "or" {
		return right, err
	}
	return r.operate(n.operator, left, right)
}

func (n *compareExpression) eval(r *run, s *scope) (Value, error) {
	left, err := r.eval(n.first, s)
	if err != nil {
		return nil, err
	}
	for i, operator := range n.operators {
		right, err := r.eval(n.others[i], s)
		if err != nil {
			return nil, err
		}
		yes, err := r.compare(operator, left, right)
		if err != nil || !yes {
			return false, err
		}
		left = right
	}
	return true, nil
}

func (n *choiceExpression) eval(r *run, s *scope) (Value, error) {
	c, err := r.eval(n.condition, s)
	switch {
	case err != nil:
		return nil, err
	case truth(c):
		return r.eval(n.yes, s)
	case n.no == nil:
		return undefined{"the inline if-expression evaluated to false and no else section was defined"}, nil
	}
	return r.eval(n.no, s)
}

func (n *attributeExpression) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(n.value, s)
	if err != nil {
		return nil, err
	}
	return attributeOf(v, n.name)
}

// attributeOf is v.name: a method, or else an item.
func attributeOf(v Value, name string) (Value, error) {
	switch v := v.(type) {
	case undefined:
		return nil, errors.New(v.text)
	case *namespace:
		if x, ok := v.Get(name); ok {
			return x, nil
		}
	case *loopState:
		if f, ok := loopAttributes[name]; ok {
			return f(v), nil
		}
	default:
		if m, ok := methodOf(v, name); ok {
			return m, nil
		}
		if d, ok := v.(*Dict); ok {
			if x, ok := d.Get(name); ok {
				return x, nil
			}
		}
	}
	return missing(v, "attribute '"+name+"'"), nil
}

func missing(v Value, what string) Value {
	if v == nil {
		return undefined{"'None' has no " + what}
	}
	return undefined{fmt.Sprintf("'%s object' has no %s", typeName(v), what)}
}

func (n *itemExpression) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(n.value, s)
	if err != nil {
		return nil, err
	}
	key, err := r.eval(n.key, s)
	if err != nil {
		return nil, err
	}
	return r.itemOf(v, key)
}

// itemOf is v[key]: an item, or else a method.
func (r *run) itemOf(v, key Value) (Value, error) {
	if u, ok := v.(undefined); ok {
		return nil, errors.New(u.text)
	}
	if d, ok := v.(*Dict); ok {
		if x, ok := d.get(key); ok {
			return x, nil
		}
	}
	if name, ok := key.(Text); ok {
		return attributeOf(v, name.s)
	}
	_, i, isInt, ok := number(key)
	if !ok || !isInt {
		return missing(v, "element "+typeName(key)), nil
	}
	switch v := v.(type) {
	case *List:
		if at, ok := indexIn(i, len(v.items)); ok {
			return v.items[at], nil
		}
	case Text:
		if err := r.spendText(len(v.s)); err != nil {
			return nil, err
		}
		if at, ok := indexIn(i, v.length()); ok {
			return v.runeSlice(at, at+1, 1), nil
		}
	}
	return missing(v, "element "+strconv.FormatInt(i, 10)), nil
}

// indexIn turns an index that may count from the end into one from the beginning.
func indexIn(i int64, n int) (int, bool) {
	if i < 0 {
		i += int64(n)
	}
	return int(i), i >= 0 && i < int64(n)
}

func (n *sliceExpression) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(n.value, s)
	if err != nil {
		return nil, err
	}
	var bounds [3]*int64
	for i, e := range []expression{n.start, n.stop, n.step} {
		if e == nil {
			continue
		}
		b, err := r.eval(e, s)
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		_, whole, isInt, ok := number(b)
		if !ok || !isInt {
			return nil, wrongType(b, "slice indices must be integers or None, not "+typeName(b))
		}
		bounds[i] = &whole
	}
	return r.sliceOf(v, bounds)
}

func (r *run) sliceOf(v Value, bounds [3]*int64) (Value, error) {
	switch v := v.(type) {
	case undefined:
		return nil, errors.New(v.text)
	case *List:
		start, stop, step, err := sliceBounds(bounds, len(v.items))
		if err != nil {
			return nil, err
		}
		if err := r.spend(len(v.items)); err != nil {
			return nil, err
		}
		out := &List{tuple: v.tuple, own: true}
		for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
			out.items = append(out.items, v.items[i])
		}
		return out, nil
	case Text:
		if err := r.spendText(len(v.s)); err != nil {
			return nil, err
		}
		start, stop, step, err := sliceBounds(bounds, v.length())
		if err != nil {
			return nil, err
		}
		return v.runeSlice(start, stop, step), nil
	}
	return nil, fmt.Errorf("'%s' object is not subscriptable", typeName(v))
}

// sliceBounds are those of Python's [start:stop:step] for n items.
func sliceBounds(bounds [3]*int64, n int) (start, stop, step int, err error) {
	step = 1
	if b := bounds[2]; b != nil {
		if *b == 0 {
			return 0, 0, 0, errors.New("slice step cannot be zero")
		}
		step = int(max(min(*b, int64(n)+1), -int64(n)-1))
	}
	low, high := 0, n
	if step < 0 {
		low, high = -1, n-1
	}
	clamp := func(b *int64, otherwise int) int {
		if b == nil {
			return otherwise
		}
		i := *b
		if i < 0 {
			i += int64(n)
		}
		return int(max(min(i, int64(high)), int64(low)))
	}
	if step < 0 {
		return clamp(bounds[0], high), clamp(bounds[1], low), step, nil
	}
	return clamp(bounds[0], low), clamp(bounds[1], high), step, nil
}

// runeSlice is as sliceBounds says, of characters.
func (t Text) runeSlice(start, stop, step int) Text {
	if step == 1 {
		if start >= stop {
			return Text{safe: t.safe}
		}
		from, to, i := len(t.s), len(t.s), 0
		for at := range t.s {
			if i == start {
				from = at
			}
			if i == stop {
				to = at
				break
			}
			i++
		}
		return t.slice(from, to)
	}
	runes := t.runes()
	var b builder
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		b.add(Text{s: string(runes[i].r)}.from(runes[i].outside))
	}
	return b.text()
}

func (n *callExpression) eval(r *run, s *scope) (Value, error) {
	callee, err := r.eval(n.callee, s)
	if err != nil {
		return nil, err
	}
	args, err := n.evaluate(r, s)
	if err != nil {
		return nil, err
	}
	return r.invoke(callee, args)
}

func (r *run) invoke(callee Value, args arguments) (Value, error) {
	switch f := callee.(type) {
	case *function:
		return f.call(r, args)
	case *loopState:
		items, ok := args.get(0, "iterable")
		if f.again == nil || !ok {
			return nil, errors.New("the loop cannot be called: it is no recursive one, or there are no items")
		}
		return f.again(items)
	case undefined:
		return nil, errors.New(f.text)
	}
	return nil, fmt.Errorf("'%s' object is not callable", typeName(callee))
}

// evaluate evaluates the arguments of a call.
func (l *argumentList) evaluate(r *run, s *scope) (a arguments, err error) {
	if a.positional, err = r.evalAll(l.positional, s); err != nil {
		return a, err
	}
	for _, n := range l.named {
		v, err := r.eval(n.value, s)
		if err != nil {
			return a, err
		}
		a.named = append(a.named, namedValue{n.name, v})
	}
	if l.list != nil {
		v, err := r.eval(l.list, s)
		if err != nil {
			return a, err
		}
		items, err := r.items(v)
		if err != nil {
			return a, err
		}
		a.positional = append(a.positional, items...)
	}
	if l.dict == nil {
		return a, nil
	}
	v, err := r.eval(l.dict, s)
	if err != nil {
		return a, err
	}
	d, ok := v.(*Dict)
	if !ok {
		return a, wrongType(v, "argument after ** must be a mapping, not "+typeName(v))
	}
	for i, key := range d.keys {
		if name, ok := key.(Text); ok {
			a.named = append(a.named, namedValue{name.s, d.values[i]})
		}
	}
	return a, nil
}

func (n *filterExpression) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(n.value, s)
	if err != nil {
		return nil, err
	}
	return r.apply(n.filterCall, v, s)
}

func (r *run) applyAll(calls []filterCall, v Value, s *scope) (_ Value, err error) {
	for _, f := range calls {
		if v, err = r.apply(f, v, s); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (r *run) apply(f filterCall, v Value, s *scope) (Value, error) {
	a, err := f.evaluate(r, s)
	if err != nil {
		return nil, err
	}
	return r.filter(f.name, v, a)
}

// filter applies a filter by its name.
func (r *run) filter(name string, v Value, a arguments) (Value, error) {
	f, ok := filters[name]
	if !ok {
		return nil, fmt.Errorf("no filter named '%s'", name)
	}
	out, err := f(r, v, a)
	if err != nil {
		return nil, fmt.Errorf("filter %s: %w", name, err)
	}
	return out, nil
}

func (n *testExpression) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(n.value, s)
	if err != nil {
		return nil, err
	}
	a, err := n.evaluate(r, s)
	if err != nil {
		return nil, err
	}
	yes, err := r.test(n.name, v, a)
	return yes != n.negated, err
}

// test applies a test by its name.
func (r *run) test(name string, v Value, a arguments) (bool, error) {
	f, ok := tests[name]
	if !ok {
		return false, fmt.Errorf("no test named '%s'", name)
	}
	yes, err := f(r, v, a)
	if err != nil {
		return false, fmt.Errorf("test %s: %w", name, err)
	}
	return yes, nil
}

// wrongType is the error for a value that does not fit; of an undefined one, that is
// what is wrong.
func wrongType(v Value, text string) error {
	if u, ok := v.(undefined); ok {
		return errors.New(u.text)
	}
	return errors.New(text)
}

// items are what a loop visits. The values are the caller's, the slice is not to be changed.
func (r *run) items(v Value) ([]Value, error) {
	switch v := v.(type) {
	case undefined:
		return nil, nil
	case *List:
		return slices.Clip(v.items), r.spend(len(v.items))
	case *Dict:
		return slices.Clip(v.keys), r.spend(len(v.keys))
	case Text:
		if err := r.spend(len(v.s)); err != nil {
			return nil, err
		}
		var list []Value
		for _, m := range v.runes() {
			list = append(list, Text{s: string(m.r)}.from(m.outside))
		}
		return list, nil
	}
	return nil, fmt.Errorf("'%s' object is not iterable", typeName(v))
}
