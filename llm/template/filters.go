package template

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// filter is what stands after "|".
type filter func(r *run, v Value, a arguments) (Value, error)

// filters by name; filled by init, as some of them call others.
var filters map[string]filter

func init() {
	filters = map[string]filter{
		"abs": absolute, "attr": attrFilter, "batch": batchFilter, "capitalize": viaText("capitalize"),
		"center": viaText("center"), "count": lengthFilter, "d": defaultFilter, "default": defaultFilter,
		"dictsort": dictSortFilter, "e": escapeFilter, "escape": escapeFilter, "first": firstFilter,
		"float": floatFilter, "forceescape": escapeFilter, "format": formatFilter, "groupby": groupByFilter,
		"indent": indentFilter, "int": intFilter, "items": itemsFilter, "join": joinFilter, "last": lastFilter,
		"length": lengthFilter, "list": listFilter, "lower": viaText("lower"), "map": mapFilter,
		"max": extreme(1), "min": extreme(-1), "reject": selector(false, false), "rejectattr": selector(false, true),
		"replace": viaText("replace"), "reverse": reverseFilter, "round": roundFilter, "safe": safeFilter,
		"select": selector(true, false), "selectattr": selector(true, true), "slice": sliceFilter, "sort": sortFilter,
		"split": viaText("split"), "string": stringFilter, "sum": sumFilter, "title": titleFilter, "tojson": toJSON,
		"trim": viaText("strip"), "truncate": truncateFilter, "unique": uniqueFilter, "upper": viaText("upper"),
		"wordcount": wordCountFilter, "lstrip": viaText("lstrip"), "rstrip": viaText("rstrip"), "strip": viaText("strip"),
		"keys": viaDict("keys"), "values": viaDict("values"),
	}
}

// viaText is a filter that is a method of the printed value.
func viaText(name string) filter {
	return func(r *run, v Value, a arguments) (Value, error) {
		t, err := r.text(v)
		if err != nil {
			return nil, err
		}
		return textMethods[name](r, t, a)
	}
}

func viaDict(name string) filter {
	return func(r *run, v Value, a arguments) (Value, error) {
		if d, ok := v.(*Dict); ok {
			return dictMethods[name](r, d, a)
		}
		return nil, wrongType(v, "got "+typeName(v)+", want a mapping")
	}
}

// titleFilter begins words with capitals; unlike str.title, an apostrophe ends none.
func titleFilter(r *run, v Value, a arguments) (Value, error) {
	t, err := r.text(v)
	if err != nil {
		return nil, err
	}
	return mapped(func(before, c rune) string {
		if before == 0 || isSpace(before) || strings.ContainsRune("-({[<", before) {
			return upper(c)
		}
		return lower(c)
	})(r, t, a)
}

func safeFilter(r *run, v Value, _ arguments) (Value, error) {
	t, err := r.text(v)
	t.safe = true
	return t, err
}

func stringFilter(r *run, v Value, _ arguments) (Value, error) { return r.text(v) }

var htmlEscapes = map[rune]string{'&': "&amp;", '<': "&lt;", '>': "&gt;", '"': "&#34;", '\'': "&#39;"}

// escape makes a text fit for HTML, once.
func escape(t Text) Text {
	if t.safe {
		return t
	}
	out := t.mapRunes(func(_, c rune) string {
		if e, ok := htmlEscapes[c]; ok {
			return e
		}
		return string(c)
	})
	out.safe = true
	return out
}

func escapeFilter(r *run, v Value, _ arguments) (Value, error) {
	t, err := r.text(v)
	if err != nil {
		return nil, err
	}
	return escape(t), r.spendText(16 * len(t.s))
}

func formatFilter(r *run, v Value, a arguments) (Value, error) {
	t, err := r.text(v)
	if err != nil {
		return nil, err
	}
	return r.format(t, &List{items: a.positional, tuple: true})
}

func defaultFilter(_ *run, v Value, a arguments) (Value, error) {
	_, missing := v.(undefined)
	if missing || truth(a.or(1, "boolean", false)) && !truth(v) {
		return a.or(0, "default_value", Text{}), nil
	}
	return v, nil
}

func lengthFilter(r *run, v Value, _ arguments) (Value, error) {
	switch v := v.(type) {
	case undefined:
		return int64(0), nil
	case Text:
		return int64(v.length()), r.spendText(len(v.s))
	case *List:
		return int64(len(v.items)), nil
	case *Dict:
		return int64(v.Len()), nil
	}
	return nil, fmt.Errorf("object of type '%s' has no len()", typeName(v))
}

func absolute(_ *run, v Value, _ arguments) (Value, error) {
	f, i, isInt, ok := number(v)
	switch {
	case !ok:
		return nil, wrongType(v, fmt.Sprintf("bad operand type for abs(): '%s'", typeName(v)))
	case isInt && i == math.MinInt64:
		return nil, errOverflow
	case isInt && i < 0:
		return -i, nil
	case isInt:
		return i, nil
	}
	return math.Abs(f), nil
}

func roundFilter(_ *run, v Value, a arguments) (Value, error) {
	f, whole, isInt, ok := number(v)
	if !ok {
		return nil, wrongType(v, fmt.Sprintf("type %s cannot be rounded", typeName(v)))
	}
	precision, err := intArgument(a, 0, "precision", 0)
	if err != nil {
		return nil, err
	}
	method, _ := a.or(1, "method", Text{s: "common"}).(Text)
	scale := math.Pow(10, float64(max(min(precision, 300), -300)))
	switch {
	case method.s == "ceil":
		return math.Ceil(f*scale) / scale, nil
	case method.s == "floor":
		return math.Floor(f*scale) / scale, nil
	case method.s != "common":
		return nil, errors.New("method must be common, ceil or floor")
	case isInt:
		return whole, nil // also of false and true
	case precision >= 0 && precision < 20:
		// As Python: the decimal digits nearest to the exact value, ties to even.
		rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(precision), 64), 64)
		return rounded, err
	}
	return math.RoundToEven(f*scale) / scale, nil
}

func intFilter(_ *run, v Value, a arguments) (Value, error) {
	base, err := intArgument(a, 1, "base", 10)
	if err != nil {
		return nil, err
	}
	otherwise := a.or(0, "default", int64(0))
	switch v := v.(type) {
	case undefined:
		return nil, errors.New(v.text)
	case Text:
		s := strings.ReplaceAll(strings.TrimFunc(v.s, isSpace), "_", "")
		if base == 16 || base == 8 || base == 2 {
			s = strings.TrimPrefix(strings.ToLower(s), map[int64]string{16: "0x", 8: "0o", 2: "0b"}[base])
		}
		if base < 2 || base > 36 {
			return otherwise, nil
		}
		if i, err := strconv.ParseInt(s, int(base), 64); err == nil {
			return i, nil
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < 1<<62 {
			return int64(f), nil
		}
		return otherwise, nil
	}
	f, i, isInt, ok := number(v)
	switch {
	case !ok:
		return otherwise, nil
	case isInt:
		return i, nil
	case math.Abs(f) < 1<<62:
		return int64(f), nil
	}
	return otherwise, nil
}

func floatFilter(_ *run, v Value, a arguments) (Value, error) {
	if t, ok := v.(Text); ok {
		if f, err := strconv.ParseFloat(strings.TrimFunc(t.s, isSpace), 64); err == nil {
			return f, nil
		}
	} else if u, ok := v.(undefined); ok {
		return nil, errors.New(u.text)
	} else if f, _, _, ok := number(v); ok {
		return f, nil
	}
	return a.or(0, "default", float64(0)), nil
}

func indentFilter(r *run, v Value, a arguments) (Value, error) {
	t, ok := v.(Text)
	if !ok {
		return nil, wrongType(v, "got "+typeName(v)+", want text")
	}
	with := Text{}
	switch w := a.or(0, "width", int64(4)).(type) {
	case int64:
		if err := r.fits(int(max(min(w, 1<<40), 0))); err != nil {
			return nil, err
		}
		with = Text{s: strings.Repeat(" ", int(max(w, 0)))}
	case Text:
		with = w
	default:
		return nil, fmt.Errorf("width is of type %s, want a number or text", typeName(w))
	}
	first, blank := truth(a.or(1, "first", false)), truth(a.or(2, "blank", false))
	ended, err := r.join(t, Text{s: "\n", safe: t.safe}) // a text that ends in a newline has an empty last line
	if err != nil {
		return nil, err
	}
	lines, err := splitLines(r, ended, arguments{})
	if err != nil {
		return nil, err
	}
	items := lines.(*List).items
	var b builder
	for i, item := range items {
		line := item.(Text)
		if i > 0 {
			b.addString("\n")
		}
		if i == 0 && first || i > 0 && (blank || line.s != "") {
			b.add(with)
		}
		b.add(line)
		if err := errors.Join(r.spendText(len(with.s)), r.fits(b.len())); err != nil {
			return nil, err
		}
	}
	return b.text(), nil
}

func truncateFilter(r *run, v Value, a arguments) (Value, error) {
	t, err := r.text(v)
	if err != nil {
		return nil, err
	}
	length, err := intArgument(a, 0, "length", 255)
	if err != nil {
		return nil, err
	}
	leeway, err := intArgument(a, 3, "leeway", 5)
	if err := errors.Join(err, r.spendText(len(t.s))); err != nil {
		return nil, err
	}
	end, ok := a.or(2, "end", Text{s: "..."}).(Text)
	if !ok || length < int64(end.length()) {
		return nil, errors.New("the length is less than that of the end")
	}
	// Lists and mappings of few items stay as they are.
	if long, err := lengthFilter(r, v, arguments{}); err != nil || long.(int64) <= length+leeway {
		return v, err
	}
	cut := t.runeSlice(0, int(length)-end.length(), 1)
	if !truth(a.or(1, "killwords", false)) {
		if i := strings.LastIndexByte(cut.s, ' '); i >= 0 {
			cut = cut.slice(0, i)
		}
	}
	return r.join(cut, end)
}

func wordCountFilter(r *run, v Value, _ arguments) (Value, error) {
	t, err := r.text(v)
	if err := errors.Join(err, r.spendText(16*len(t.s))); err != nil {
		return nil, err
	}
	words := strings.FieldsFunc(t.s, func(c rune) bool { return !wordRune(c) })
	return int64(len(words)), nil
}

// wordRune tells whether a character is part of a word.
func wordRune(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c) }

func attrFilter(_ *run, v Value, a arguments) (Value, error) {
	name, err := textArgument(a, 0, "name")
	if err != nil {
		return nil, err
	}
	if _, ok := v.(*Dict); ok {
		// Jinja's attr does not look among the items.
		if m, ok := methodOf(v, name.s); ok {
			return m, nil
		}
		return missing(v, "attribute '"+name.s+"'"), nil
	}
	return attributeOf(v, name.s)
}

// sortValues sorts stably by what key makes of the items.
func sortValues(r *run, items []Value, key func(Value) (Value, error), reverse bool) ([]Value, error) {
	type pair struct{ key, item Value }
	pairs := make([]pair, len(items))
	for i, item := range items {
		k, err := key(item)
		if err != nil {
			return nil, err
		}
		pairs[i] = pair{k, item}
	}
	var failed error
	slices.SortStableFunc(pairs, func(a, b pair) int {
		if failed != nil {
			return 0
		}
		c, err := r.order("<", a.key, b.key, 0)
		if err != nil {
			failed = err
		}
		if reverse {
			return -c
		}
		return c
	})
	out := make([]Value, len(items))
	for i, p := range pairs {
		out[i] = p.item
	}
	return out, failed
}
