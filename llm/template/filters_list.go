package template

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Filters of lists and mappings.

func firstFilter(r *run, v Value, _ arguments) (Value, error) {
	items, err := r.items(v)
	if err != nil || len(items) == 0 {
		return undefined{"No first item, sequence was empty."}, err
	}
	return items[0], nil
}

func lastFilter(r *run, v Value, _ arguments) (Value, error) {
	items, err := r.items(v)
	if err != nil || len(items) == 0 {
		return undefined{"No last item, sequence was empty."}, err
	}
	return items[len(items)-1], nil
}

func listFilter(r *run, v Value, _ arguments) (Value, error) {
	items, err := r.items(v)
	return listOf(slices.Clone(items)), err
}

func reverseFilter(r *run, v Value, _ arguments) (Value, error) {
	if t, ok := v.(Text); ok {
		return t.runeSlice(t.length()-1, -1, -1), r.spend(len(t.s) / 16)
	}
	items, err := r.items(v)
	items = slices.Clone(items)
	slices.Reverse(items)
	return &List{items: items, lazy: true, own: true}, err
}

func itemsFilter(r *run, v Value, _ arguments) (Value, error) {
	switch v := v.(type) {
	case undefined:
		return listOf(nil), nil
	case *Dict:
		return dictItems(r, v, arguments{})
	}
	return nil, errors.New("can only get item pairs from a mapping")
}

func joinFilter(r *run, v Value, a arguments) (Value, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	separator, err := r.text(a.or(0, "d", Text{}))
	if err != nil {
		return nil, err
	}
	if path, ok := a.get(1, "attribute"); ok && path != nil {
		if items, err = r.attributes(items, path); err != nil {
			return nil, err
		}
	}
	return r.joined(items, separator)
}

// attributes takes an attribute of every item.
func (r *run) attributes(items []Value, path Value) ([]Value, error) {
	out := make([]Value, len(items))
	for i, item := range items {
		v, err := r.attribute(item, path)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// attribute follows a path such as "function.name" or 0, as filters name what they look at.
func (r *run) attribute(v, path Value) (Value, error) {
	if _, ok := path.(int64); ok {
		return r.itemOf(v, path)
	}
	t, ok := path.(Text)
	if !ok {
		return nil, wrongType(path, "an attribute must be str or int, not "+typeName(path))
	}
	for part := range strings.SplitSeq(t.s, ".") {
		key := Value(Text{s: part})
		if i, err := strconv.ParseInt(part, 10, 64); err == nil {
			key = i
		}
		var err error
		if v, err = r.itemOf(v, key); err != nil {
			return nil, err
		}
		if err := r.spend(1); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// itemsIfTrue are the items of a value. Filters that pass items on one by one take
// whatever is false for nothing, numbers and none too.
func (r *run) itemsIfTrue(v Value) ([]Value, error) {
	if !truth(v) {
		return nil, nil
	}
	return r.items(v)
}

func mapFilter(r *run, v Value, a arguments) (Value, error) {
	items, err := r.itemsIfTrue(v)
	if err != nil {
		return nil, err
	}
	each := func(item Value) (Value, error) { return nil, errors.New("map requires a filter argument") }
	if path, ok := a.get(-1, "attribute"); ok {
		otherwise, given := a.get(-1, "default")
		each = func(item Value) (Value, error) {
			got, err := r.attribute(item, path)
			if _, missing := got.(undefined); missing && given {
				return otherwise, err
			}
			return got, err
		}
	} else if len(a.positional) > 0 {
		name, ok := a.positional[0].(Text)
		if !ok {
			return nil, errors.New("the name of a filter must be str")
		}
		rest := arguments{a.positional[1:], a.named}
		each = func(item Value) (Value, error) { return r.filter(name.s, item, rest) }
	}
	out := make([]Value, len(items))
	for i, item := range items {
		if out[i], err = each(item); err != nil {
			return nil, err
		}
	}
	return &List{items: out, lazy: true, own: true}, nil
}

// selector is select, reject, or those of them that test an attribute.
func selector(want, ofAttribute bool) filter {
	return func(r *run, v Value, a arguments) (Value, error) {
		items, err := r.itemsIfTrue(v)
		if err != nil {
			return nil, err
		}
		rest := a.positional
		look := func(item Value) (Value, error) { return item, nil }
		if ofAttribute {
			if len(rest) == 0 {
				return nil, errors.New("missing parameter for attribute name")
			}
			path := rest[0]
			rest = rest[1:]
			look = func(item Value) (Value, error) { return r.attribute(item, path) }
		}
		out := &List{lazy: true, own: true}
		for _, item := range items {
			x, err := look(item)
			if err != nil {
				return nil, err
			}
			yes := truth(x)
			if len(rest) > 0 {
				name, ok := rest[0].(Text)
				if !ok {
					return nil, errors.New("the name of a test must be str")
				}
				if yes, err = r.test(name.s, x, arguments{rest[1:], a.named}); err != nil {
					return nil, err
				}
			}
			if err := r.spend(1); err != nil {
				return nil, err
			}
			if yes == want {
				out.items = append(out.items, item)
			}
		}
		return out, nil
	}
}

// folded is what values are compared by where case does not count.
func folded(r *run, v Value, caseSensitive bool) (Value, error) {
	if t, ok := v.(Text); ok && !caseSensitive {
		return textMethods["lower"](r, t, arguments{})
	}
	return v, nil
}

// attributesKey is what sort goes by, several attributes with commas between them. It is a
// list even of one value: of lists, equal values need no order.
func (r *run) attributesKey(path Value, caseSensitive bool) func(Value) (Value, error) {
	paths := []Value{path}
	if t, ok := path.(Text); ok {
		paths = nil
		for part := range strings.SplitSeq(t.s, ",") {
			paths = append(paths, Text{s: part})
		}
	}
	return func(item Value) (Value, error) {
		key := &List{}
		for _, path := range paths {
			v, err := r.sortKey(path, caseSensitive)(item)
			if err != nil {
				return nil, err
			}
			key.items = append(key.items, v)
		}
		return key, nil
	}
}

// sortKey is what other filters compare by: items themselves, or an attribute of them.
func (r *run) sortKey(path Value, caseSensitive bool) func(Value) (Value, error) {
	return func(item Value) (Value, error) {
		if path == nil {
			return folded(r, item, caseSensitive)
		}
		v, err := r.attribute(item, path)
		if err != nil {
			return nil, err
		}
		return folded(r, v, caseSensitive)
	}
}

func sortFilter(r *run, v Value, a arguments) (Value, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	reverse := truth(a.or(0, "reverse", false))
	key := r.attributesKey(a.or(2, "attribute", nil), truth(a.or(1, "case_sensitive", false)))
	out, err := sortValues(r, items, key, reverse)
	return listOf(out), err
}

func dictSortFilter(r *run, v Value, a arguments) (Value, error) {
	d, ok := v.(*Dict)
	if !ok {
		return nil, wrongType(v, fmt.Sprintf("'%s' object has no attribute 'items'", typeName(v)))
	}
	at := int64(0)
	switch by, _ := a.or(1, "by", Text{s: "key"}).(Text); by.s {
	case "key":
	case "value":
		at = 1
	default:
		return nil, errors.New(`you can only sort by either "key" or "value"`)
	}
	pairs, err := dictItems(r, d, arguments{})
	if err != nil {
		return nil, err
	}
	key := r.sortKey(at, truth(a.or(0, "case_sensitive", false)))
	out, err := sortValues(r, pairs.(*List).items, key, truth(a.or(2, "reverse", false)))
	return listOf(out), err
}

// sortedDict is a mapping in the order of its keys.
func (r *run) sortedDict(d *Dict) (*Dict, error) {
	keys, err := sortValues(r, d.keys, func(v Value) (Value, error) { return v, nil }, false)
	out := NewDict()
	for _, key := range keys {
		v, _ := d.get(key)
		out.set(key, v)
	}
	return out, err
}

func uniqueFilter(r *run, v Value, a arguments) (Value, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	key := r.sortKey(a.or(1, "attribute", nil), truth(a.or(0, "case_sensitive", false)))
	seen := make(map[string]bool)
	out := &List{lazy: true, own: true}
	for _, item := range items {
		k, err := key(item)
		if err != nil {
			return nil, err
		}
		name, ok := keyOf(k)
		if !ok {
			return nil, fmt.Errorf("unhashable type: '%s'", typeName(k))
		}
		if !seen[name] {
			seen[name] = true
			out.items = append(out.items, item)
		}
	}
	return out, nil
}

// groupByFilter makes pairs of a value of an attribute and the items that have it.
func groupByFilter(r *run, v Value, a arguments) (Value, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	path, ok := a.get(0, "attribute")
	if !ok {
		return nil, errors.New("the argument attribute is missing")
	}
	key := func(item Value) (Value, error) {
		v, err := r.attribute(item, path)
		if _, missing := v.(undefined); missing {
			v = a.or(1, "default", v)
		}
		return v, err
	}
	sorted, err := sortValues(r, items, key, false)
	if err != nil {
		return nil, err
	}
	out := listOf(nil)
	var last *List
	for _, item := range sorted {
		k, err := key(item)
		if err != nil {
			return nil, err
		}
		if last != nil {
			same, err := r.equal(k, last.items[0], 0)
			if err != nil {
				return nil, err
			}
			if same {
				group := last.items[1].(*List)
				group.items = append(group.items, item)
				continue
			}
		}
		last = &List{items: []Value{k, listOf([]Value{item})}, tuple: true, own: true}
		out.items = append(out.items, last)
	}
	return out, nil
}

func sumFilter(r *run, v Value, a arguments) (Value, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	if path, ok := a.get(0, "attribute"); ok && path != nil {
		if items, err = r.attributes(items, path); err != nil {
			return nil, err
		}
	}
	total := a.or(1, "start", int64(0))
	for _, item := range items {
		if total, err = r.operate("+", total, item); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// extreme is max (1) or min (-1).
func extreme(sign int) filter {
	return func(r *run, v Value, a arguments) (Value, error) {
		items, err := r.items(v)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return undefined{"No aggregated item, sequence was empty."}, nil
		}
		key := r.sortKey(a.or(1, "attribute", nil), truth(a.or(0, "case_sensitive", false)))
		best := items[0]
		bestKey, err := key(best)
		for _, item := range items[1:] {
			if err != nil {
				return nil, err
			}
			var k Value
			if k, err = key(item); err != nil {
				return nil, err
			}
			var c int
			if c, err = r.order("<", k, bestKey, 0); c*sign > 0 {
				best, bestKey = item, k
			}
		}
		return best, err
	}
}

// batchFilter makes lists of n items each, the last one filled up.
func batchFilter(r *run, v Value, a arguments) (Value, error) {
	items, n, err := r.itemsAndCount(v, a)
	if err != nil {
		return nil, err
	}
	out := &List{lazy: true, own: true}
	for part := range slices.Chunk(items, n) {
		list := listOf(slices.Clone(part))
		if fill, ok := a.get(1, "fill_with"); ok && fill != nil {
			for len(list.items) < n {
				if err := r.spend(1); err != nil {
					return nil, err
				}
				list.items = append(list.items, fill)
			}
		}
		out.items = append(out.items, list)
	}
	return out, nil
}

func (r *run) itemsAndCount(v Value, a arguments) ([]Value, int, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, 0, err
	}
	n, err := intArgument(a, 0, "count", 0)
	if err == nil && (n < 1 || n > 1<<30) {
		err = fmt.Errorf("a count of %d, want at least 1", n)
	}
	return items, int(n), err
}

// sliceFilter makes n lists of about equal length.
func sliceFilter(r *run, v Value, a arguments) (Value, error) {
	items, n, err := r.itemsAndCount(v, a)
	if err := errors.Join(err, r.spend(n)); err != nil {
		return nil, err
	}
	each, more := len(items)/n, len(items)%n
	out := &List{lazy: true, own: true}
	at := 0
	for i := range n {
		size := each
		if i < more {
			size++
		}
		list := listOf(slices.Clone(items[at : at+size]))
		at += size
		if fill, ok := a.get(1, "fill_with"); ok && fill != nil && i >= more {
			list.items = append(list.items, fill)
		}
		out.items = append(out.items, list)
	}
	return out, nil
}
