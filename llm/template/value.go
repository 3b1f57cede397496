package template

import (
	"fmt"
	"strconv"
	"time"
)

// Value is what a variable holds: nil (none), bool, int64, float64, [Text], *[List],
// *[Dict], or what only a template makes: undefined, a namespace, a function.
type Value any

// List is a list or a tuple.
type List struct {
	items []Value
	tuple bool
	lazy  bool // a generator in Jinja: true even when empty
	own   bool // made by the template, which may change it
}

// NewList makes a list of values.
func NewList(items ...Value) *List { return &List{items: items} }

func listOf(items []Value) *List { return &List{items: items, own: true} }

// Dict is a mapping that keeps the order in which keys came.
type Dict struct {
	keys   []Value // Text, int64, bool, float64 or nil
	values []Value
	index  map[string]int // by keyOf
	own    bool
}

// NewDict makes an empty mapping.
func NewDict() *Dict { return &Dict{index: make(map[string]int)} }

// Set gives a key a value; a new key comes last.
func (d *Dict) Set(key string, v Value) { d.set(Inside(key), v) }

// Get returns the value of a key.
func (d *Dict) Get(key string) (Value, bool) { return d.get(Text{s: key}) }

// Len is the number of keys.
func (d *Dict) Len() int { return len(d.keys) }

func (d *Dict) set(key, v Value) bool {
	name, ok := keyOf(key)
	if !ok {
		return false
	}
	if i, have := d.index[name]; have {
		d.values[i] = v
		return true
	}
	d.index[name] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, v)
	return true
}

func (d *Dict) get(key Value) (Value, bool) {
	name, ok := keyOf(key)
	if !ok {
		return nil, false
	}
	i, ok := d.index[name]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

func (d *Dict) remove(key Value) (Value, bool) {
	v, ok := d.get(key)
	if !ok {
		return nil, false
	}
	out := NewDict()
	name, _ := keyOf(key)
	for i, k := range d.keys {
		if other, _ := keyOf(k); other != name {
			out.set(k, d.values[i])
		}
	}
	out.own = d.own
	*d = *out
	return v, true
}

func (d *Dict) copy() *Dict {
	out := NewDict()
	out.own = true
	for i, k := range d.keys {
		out.set(k, d.values[i])
	}
	return out
}

// keyOf is what keys are found by: equal keys have the same, 1 and true among them.
func keyOf(v Value) (string, bool) {
	switch v := v.(type) {
	case Text:
		return "s" + v.s, true
	case bool:
		if v {
			return "i1", true
		}
		return "i0", true
	case int64:
		return "i" + strconv.FormatInt(v, 10), true
	case float64:
		if v == float64(int64(v)) {
			return "i" + strconv.FormatInt(int64(v), 10), true
		}
		return "f" + strconv.FormatFloat(v, 'g', -1, 64), true
	case nil:
		return "n", true
	case undefined:
		return "u", true
	case *List:
		if !v.tuple {
			return "", false
		}
		key := "t"
		for _, item := range v.items {
			k, ok := keyOf(item)
			if !ok || len(key) > 1<<12 {
				return "", false
			}
			key += strconv.Itoa(len(k)) + ":" + k
		}
		return key, true
	}
	return "", false
}

// namespace is what {% set ns.x = .. %} may change.
type namespace struct{ *Dict }

// undefined is what a name that nobody gave a value has. It prints as nothing, is
// false, and any other use of it is an error with this text.
type undefined struct{ text string }

// function is what can be called.
type function struct {
	name string
	call func(r *run, a arguments) (Value, error)
}

// arguments are those of a call.
type arguments struct {
	positional []Value
	named      []namedValue
}

type namedValue struct {
	name  string
	value Value
}

// get finds an argument by its name, or its number where the call gave it no name.
func (a arguments) get(n int, name string) (Value, bool) {
	for _, v := range a.named {
		if v.name == name {
			return v.value, true
		}
	}
	if n >= 0 && n < len(a.positional) {
		return a.positional[n], true
	}
	return nil, false
}

// or finds an argument, or else returns what it is by default.
func (a arguments) or(n int, name string, otherwise Value) Value {
	if v, ok := a.get(n, name); ok {
		return v
	}
	return otherwise
}

// typeName is Python's name of a value's type, for messages.
func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case Text:
		return "str"
	case *List:
		if v.tuple {
			return "tuple"
		}
		return "list"
	case *Dict:
		return "dict"
	case *namespace:
		return "Namespace"
	case *loopState:
		return "LoopContext"
	case undefined:
		return "Undefined"
	case *function:
		return "function"
	}
	return fmt.Sprintf("%T", v)
}

// truth tells whether an if takes a value for true.
func truth(v Value) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case Text:
		return v.s != ""
	case *List:
		return v.lazy || len(v.items) > 0
	case *Dict:
		return len(v.keys) > 0
	}
	return true
}

// number returns the value as a float, and as an integer where it is one.
func number(v Value) (f float64, i int64, isInt, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, 1, true, true
		}
		return 0, 0, true, true
	case int64:
		return float64(v), v, true, true
	case float64:
		return v, 0, false, true
	}
	return 0, 0, false, false
}

// Clock gives a template's strftime_now its time.
type Clock func() time.Time

// Delete removes a key.
func (d *Dict) Delete(key string) { d.remove(Text{s: key}) }
