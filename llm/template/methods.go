package template

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// method is a function of a value, as Python's types have them.
type method func(r *run, v Value, a arguments) (Value, error)

// Methods by the type of the value; filled by init, as some of them use the others.
var textMethods, listMethods, dictMethods map[string]method

// methodOf finds a method and binds it.
func methodOf(v Value, name string) (Value, bool) {
	var m method
	switch v.(type) {
	case Text:
		m = textMethods[name]
	case *List:
		m = listMethods[name]
	case *Dict:
		m = dictMethods[name]
	}
	if m == nil {
		return nil, false
	}
	return &function{name, func(r *run, a arguments) (Value, error) {
		out, err := m(r, v, a)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", typeName(v), name, err)
		}
		return out, nil
	}}, true
}

func init() {
	textMethods = map[string]method{
		"strip":        trimmer(true, true),
		"lstrip":       trimmer(true, false),
		"rstrip":       trimmer(false, true),
		"upper":        mapped(func(_, c rune) string { return upper(c) }),
		"lower":        mapped(func(_, c rune) string { return lower(c) }),
		"casefold":     mapped(func(_, c rune) string { return lower(c) }),
		"title":        mapped(titled),
		"capitalize":   capitalizeMethod,
		"swapcase":     mapped(swapped),
		"split":        splitter(false),
		"rsplit":       splitter(true),
		"splitlines":   splitLines,
		"partition":    partitioner(strings.Index, false),
		"rpartition":   partitioner(strings.LastIndex, true),
		"startswith":   affix(strings.HasPrefix),
		"endswith":     affix(strings.HasSuffix),
		"removeprefix": affixRemover(true),
		"removesuffix": affixRemover(false),
		"replace":      replaceMethod,
		"join":         joinMethod,
		"find":         finder(strings.Index, false),
		"rfind":        finder(strings.LastIndex, false),
		"index":        finder(strings.Index, true),
		"rindex":       finder(strings.LastIndex, true),
		"count":        countMethod,
		"isdigit":      every(unicode.IsDigit),
		"isdecimal":    every(unicode.IsDigit),
		"isnumeric":    every(unicode.IsNumber),
		"isalpha":      every(unicode.IsLetter),
		"isalnum":      every(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }),
		"isspace":      every(isSpace),
		"isupper":      cased(unicode.IsUpper, unicode.IsLower),
		"islower":      cased(unicode.IsLower, unicode.IsUpper),
		"format":       formatMethod,
		"zfill":        zeroFill,
		"ljust":        justifier(1, 0),
		"rjust":        justifier(0, 1),
		"center":       justifier(1, 1),
	}
	listMethods = map[string]method{
		"index": listIndex, "count": listCount, "append": changing(listAppend), "extend": changing(listExtend),
		"insert": changing(listInsert), "pop": changing(listPop), "copy": func(_ *run, v Value, _ arguments) (Value, error) {
			return listOf(append([]Value(nil), v.(*List).items...)), nil
		},
	}
	dictMethods = map[string]method{
		"get": dictGet, "items": dictItems,
		"keys":   func(r *run, v Value, _ arguments) (Value, error) { return r.listFrom(v.(*Dict).keys) },
		"values": func(r *run, v Value, _ arguments) (Value, error) { return r.listFrom(v.(*Dict).values) },
		"copy": func(r *run, v Value, _ arguments) (Value, error) {
			return v.(*Dict).copy(), r.spend(v.(*Dict).Len())
		},
		"update": changing(dictUpdate), "pop": changing(dictPop), "setdefault": changing(dictSetDefault),
	}
}

// textArgument is an argument that must be a text.
func textArgument(a arguments, n int, name string) (Text, error) {
	v, ok := a.get(n, name)
	if !ok {
		return Text{}, fmt.Errorf("the argument %s is missing", name)
	}
	t, ok := v.(Text)
	if !ok {
		return Text{}, wrongType(v, fmt.Sprintf("the argument %s must be str, not %s", name, typeName(v)))
	}
	return t, nil
}

// intArgument is an argument that must be an integer.
func intArgument(a arguments, n int, name string, otherwise int64) (int64, error) {
	v, ok := a.get(n, name)
	if !ok || v == nil {
		return otherwise, nil
	}
	_, i, isInt, ok := number(v)
	if !ok || !isInt {
		return 0, wrongType(v, fmt.Sprintf("the argument %s must be int, not %s", name, typeName(v)))
	}
	return i, nil
}

func trimmer(left, right bool) method {
	return func(r *run, v Value, a arguments) (Value, error) {
		blank := isSpace
		if chars, ok := a.get(0, "chars"); ok && chars != nil {
			set, ok := chars.(Text)
			if !ok {
				return nil, wrongType(chars, "strip arg must be None or str, not "+typeName(chars))
			}
			if err := r.spendText(len(set.s) * 16); err != nil {
				return nil, err
			}
			runes := make(map[rune]bool)
			for _, c := range set.s {
				runes[c] = true
			}
			blank = func(c rune) bool { return runes[c] }
		}
		return v.(Text).trim(blank, left, right), r.spendText(len(v.(Text).s))
	}
}

func (t Text) trim(blank func(rune) bool, left, right bool) Text {
	start, end := 0, len(t.s)
	if left {
		start = end - len(strings.TrimLeftFunc(t.s, blank))
	}
	if right {
		end = start + len(strings.TrimRightFunc(t.s[start:], blank))
	}
	return t.slice(start, end)
}

func mapped(change func(before, c rune) string) method {
	return func(r *run, v Value, _ arguments) (Value, error) {
		t := v.(Text)
		// Taking a text apart costs more than copying it.
		if err := r.spend(len(t.s) / 16); err != nil {
			return nil, err
		}
		return t.mapRunes(change), r.fits(len(t.s))
	}
}

func upper(c rune) string {
	if c == 'ß' {
		return "SS"
	}
	return string(unicode.ToUpper(c))
}

func lower(c rune) string { return string(unicode.ToLower(c)) }

func swapped(_, c rune) string {
	if unicode.IsUpper(c) {
		return lower(c)
	}
	return upper(c)
}

// titled begins every word with a capital; words are what is cased.
func titled(before, c rune) string {
	if unicode.IsLetter(before) {
		return lower(c)
	}
	return string(unicode.ToTitle(c))
}

func capitalizeMethod(r *run, v Value, _ arguments) (Value, error) {
	first := true
	return mapped(func(_, c rune) string {
		if first {
			first = false
			return string(unicode.ToTitle(c))
		}
		return lower(c)
	})(r, v, arguments{})
}

// splitter is split or, from the right, rsplit.
func splitter(fromRight bool) method {
	return func(r *run, v Value, a arguments) (Value, error) {
		t := v.(Text)
		if err := r.spend(len(t.s) / 16); err != nil {
			return nil, err
		}
		most, err := intArgument(a, 1, "maxsplit", -1)
		if err != nil {
			return nil, err
		}
		if most < 0 || most > int64(len(t.s)) {
			most = int64(len(t.s))
		}
		var spans []span
		if sep, ok := a.get(0, "sep"); ok && sep != nil {
			by, ok := sep.(Text)
			switch {
			case !ok:
				return nil, wrongType(sep, "must be str or None, not "+typeName(sep))
			case by.s == "":
				return nil, errors.New("empty separator")
			}
			spans = splitBy(t.s, by.s, int(most), fromRight)
		} else {
			spans = splitBlanks(t.s, int(most), fromRight)
		}
		return r.cut(t, spans)
	}
}

// cut makes a list of parts.
func (r *run) cut(t Text, spans []span) (Value, error) {
	if err := r.spend(len(spans)); err != nil {
		return nil, err
	}
	out := make([]Value, len(spans))
	for i, s := range spans {
		out[i] = t.slice(s.start, s.end)
	}
	return listOf(out), r.spend(len(t.outside))
}

func splitBy(s, sep string, most int, fromRight bool) []span {
	var marks []int
	if fromRight {
		for end := len(s); len(marks) < most; {
			i := strings.LastIndex(s[:end], sep)
			if i < 0 {
				break
			}
			marks, end = append(marks, i), i
		}
		slices.Reverse(marks)
	} else {
		for at := 0; len(marks) < most; {
			i := strings.Index(s[at:], sep)
			if i < 0 {
				break
			}
			marks, at = append(marks, at+i), at+i+len(sep)
		}
	}
	var spans []span
	at := 0
	for _, m := range marks {
		spans, at = append(spans, span{at, m}), m+len(sep)
	}
	return append(spans, span{at, len(s)})
}

// splitBlanks is Python's split without a separator: runs of blanks separate, and those
// at the ends do not count.
func splitBlanks(s string, most int, fromRight bool) []span {
	var words []span
	start := -1
	for i, c := range s {
		if isSpace(c) && start >= 0 {
			words, start = append(words, span{start, i}), -1
		} else if !isSpace(c) && start < 0 {
			start = i
		}
	}
	if start >= 0 {
		words = append(words, span{start, len(s)})
	}
	if len(words) <= most+1 {
		return words
	}
	if fromRight {
		rest := span{0, words[len(words)-most-1].end}
		return append([]span{rest}, words[len(words)-most:]...)
	}
	rest := span{words[most].start, len(s)}
	return append(words[:most:most], rest)
}

func splitLines(r *run, v Value, a arguments) (Value, error) {
	t := v.(Text)
	if err := r.spend(len(t.s) / 16); err != nil {
		return nil, err
	}
	keep := truth(a.or(0, "keepends", false))
	var spans []span
	start := 0
	for i, c := range t.s {
		if i < start || !strings.ContainsRune("\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", c) {
			continue
		}
		end, next := i, i+utf8.RuneLen(c)
		if strings.HasPrefix(t.s[i:], "\r\n") {
			next = i + 2
		}
		if keep {
			end = next
		}
		spans, start = append(spans, span{start, end}), next
	}
	if start < len(t.s) {
		spans = append(spans, span{start, len(t.s)})
	}
	return r.cut(t, spans)
}

func partitioner(index func(s, sep string) int, fromRight bool) method {
	return func(r *run, v Value, a arguments) (Value, error) {
		t := v.(Text)
		sep, err := textArgument(a, 0, "sep")
		if err == nil && sep.s == "" {
			err = errors.New("empty separator")
		}
		if err := errors.Join(err, r.spendText(len(t.s))); err != nil {
			return nil, err
		}
		parts := []Value{t, Text{}, Text{}}
		if i := index(t.s, sep.s); i >= 0 {
			parts = []Value{t.slice(0, i), t.slice(i, i+len(sep.s)), t.slice(i+len(sep.s), len(t.s))}
		} else if fromRight {
			parts = []Value{Text{}, Text{}, t}
		}
		return &List{items: parts, tuple: true, own: true}, nil
	}
}

// affix is startswith or endswith, of one text or any of a tuple.
func affix(has func(s, part string) bool) method {
	return func(r *run, v Value, a arguments) (Value, error) {
		t := v.(Text)
		parts := a.positional
		if len(parts) == 0 {
			return nil, errors.New("the argument is missing")
		}
		if l, ok := parts[0].(*List); ok {
			parts = l.items
		} else {
			parts = parts[:1]
		}
		for _, p := range parts {
			part, ok := p.(Text)
			if !ok {
				return nil, wrongType(p, "first arg must be str or a tuple of str, not "+typeName(p))
			}
			if has(t.s, part.s) {
				return true, nil
			}
		}
		return false, r.spend(len(parts))
	}
}

func affixRemover(prefix bool) method {
	return func(r *run, v Value, a arguments) (Value, error) {
		t := v.(Text)
		part, err := textArgument(a, 0, "affix")
		switch {
		case err != nil:
			return nil, err
		case prefix && strings.HasPrefix(t.s, part.s):
			t = t.slice(len(part.s), len(t.s))
		case !prefix && strings.HasSuffix(t.s, part.s):
			t = t.slice(0, len(t.s)-len(part.s))
		}
		return t, r.spendText(len(t.s))
	}
}

func replaceMethod(r *run, v Value, a arguments) (Value, error) {
	t := v.(Text)
	old, err := textArgument(a, 0, "old")
	if err != nil {
		return nil, err
	}
	with, err := textArgument(a, 1, "new")
	if err != nil {
		return nil, err
	}
	most, err := intArgument(a, 2, "count", -1)
	if err != nil {
		return nil, err
	}
	return r.replace(t, old, with, most)
}

// replace puts a text where another one occurs, at most a number of times where that is
// not negative. What stays and what comes keep their origins.
func (r *run) replace(t, old, with Text, most int64) (Value, error) {
	if err := r.spendText(len(t.s)); err != nil {
		return nil, err
	}
	var b builder
	at := 0
	for from := 0; most != 0 && from <= len(t.s); most-- {
		i := strings.Index(t.s[from:], old.s)
		if i < 0 {
			break
		}
		i += from
		if err := errors.Join(r.spend(1), r.fits(b.len()+i-at+len(with.s)), r.spendText(len(with.s))); err != nil {
			return nil, err
		}
		b.add(t.slice(at, i))
		b.add(with)
		at = i + len(old.s)
		from = at
		if old.s == "" {
			_, n := utf8.DecodeRuneInString(t.s[i:])
			from = i + max(n, 1)
		}
	}
	b.add(t.slice(at, len(t.s)))
	out := b.text()
	out.safe = t.safe
	return out, r.fits(len(out.s))
}

func joinMethod(r *run, v Value, a arguments) (Value, error) {
	list, ok := a.get(0, "iterable")
	if !ok {
		return nil, errors.New("the argument is missing")
	}
	items, err := r.items(list)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		if _, ok := item.(Text); !ok {
			return nil, fmt.Errorf("sequence item %d: expected str instance, %s found", i, typeName(item))
		}
	}
	return r.joined(items, v.(Text))
}

// joined puts values together, printed, with a text between.
func (r *run) joined(items []Value, separator Text) (Value, error) {
	var parts []Text
	for i, item := range items {
		if i > 0 && separator.s != "" {
			parts = append(parts, separator)
		}
		t, err := r.text(item)
		if err != nil {
			return nil, err
		}
		parts = append(parts, t)
	}
	return r.join(parts...)
}

func finder(index func(s, part string) int, must bool) method {
	return func(r *run, v Value, a arguments) (Value, error) {
		t := v.(Text)
		part, err := textArgument(a, 0, "sub")
		if err := errors.Join(err, r.spendText(len(t.s))); err != nil {
			return nil, err
		}
		i := index(t.s, part.s)
		if i < 0 && must {
			return nil, errors.New("substring not found")
		}
		if i > 0 {
			i = utf8.RuneCountInString(t.s[:i])
		}
		return int64(i), nil
	}
}

func countMethod(r *run, v Value, a arguments) (Value, error) {
	part, err := textArgument(a, 0, "sub")
	return int64(strings.Count(v.(Text).s, part.s)), errors.Join(err, r.spendText(len(v.(Text).s)))
}

func every(is func(rune) bool) method {
	return func(r *run, v Value, _ arguments) (Value, error) {
		t := v.(Text)
		return t.s != "" && !strings.ContainsFunc(t.s, func(c rune) bool { return !is(c) }), r.spendText(len(t.s))
	}
}

// cased tells whether there are letters of one case and none of the other.
func cased(is, not func(rune) bool) method {
	return func(r *run, v Value, _ arguments) (Value, error) {
		t := v.(Text)
		return strings.ContainsFunc(t.s, is) && !strings.ContainsFunc(t.s, not), r.spendText(len(t.s))
	}
}

func zeroFill(r *run, v Value, a arguments) (Value, error) {
	t := v.(Text)
	width, err := intArgument(a, 0, "width", 0)
	if err == nil {
		err = r.fits(int(min(max(width, 0), 1<<40)))
	}
	if err != nil || int64(t.length()) >= width {
		return t, err
	}
	sign := 0
	if strings.HasPrefix(t.s, "-") || strings.HasPrefix(t.s, "+") {
		sign = 1
	}
	return r.join(t.slice(0, sign), Text{s: strings.Repeat("0", int(width)-t.length())}, t.slice(sign, len(t.s)))
}

// justifier pads with blanks: left and right say on which side of the text they come
// last, so that (1, 0) is ljust and (1, 1) center.
func justifier(right, left int64) method {
	return func(r *run, v Value, a arguments) (Value, error) {
		t := v.(Text)
		width, err := intArgument(a, 0, "width", 80)
		if err == nil {
			err = r.fits(int(min(max(width, 0), 1<<40)))
		}
		if err != nil {
			return nil, err
		}
		fill, ok := a.or(1, "fillchar", Text{s: " "}).(Text)
		if !ok || fill.length() != 1 {
			return nil, errors.New("the fill character must be exactly one character long")
		}
		total := max(width-int64(t.length()), 0)
		before := total * left
		if left+right == 2 {
			before = total/2 + total&width&1
		}
		pad := func(n int64) Text { return Text{s: strings.Repeat(fill.s, int(n))}.from(len(fill.outside) > 0) }
		return r.join(pad(before), t, pad(total-before))
	}
}

func listIndex(r *run, v Value, a arguments) (Value, error) {
	for i, item := range v.(*List).items {
		same, err := r.equal(item, a.or(0, "value", nil), 0)
		if same || err != nil {
			return int64(i), err
		}
	}
	return nil, errors.New("the value is not in list")
}

func listCount(r *run, v Value, a arguments) (Value, error) {
	n := int64(0)
	for _, item := range v.(*List).items {
		same, err := r.equal(item, a.or(0, "value", nil), 0)
		if err != nil {
			return nil, err
		}
		if same {
			n++
		}
	}
	return n, nil
}

// changing guards methods that change a value: those of the variables belong to the
// caller.
func changing(m method) method {
	return func(r *run, v Value, a arguments) (Value, error) {
		own := false
		switch v := v.(type) {
		case *List:
			own = v.own && !v.tuple
		case *Dict:
			own = v.own
		}
		if !own {
			return nil, fmt.Errorf("this %s is not to be changed: it came with the variables", typeName(v))
		}
		if err := r.spend(1); err != nil {
			return nil, err
		}
		return m(r, v, a)
	}
}

func listAppend(_ *run, v Value, a arguments) (Value, error) {
	l := v.(*List)
	l.items = append(l.items, a.or(0, "object", nil))
	return nil, nil
}

func listExtend(r *run, v Value, a arguments) (Value, error) {
	items, err := r.items(a.or(0, "iterable", nil))
	if err != nil {
		return nil, err
	}
	l := v.(*List)
	l.items = append(l.items, items...)
	return nil, nil
}

func listInsert(r *run, v Value, a arguments) (Value, error) {
	l := v.(*List)
	at, err := intArgument(a, 0, "index", 0)
	if err := errors.Join(err, r.spend(len(l.items))); err != nil {
		return nil, err
	}
	n := int64(len(l.items))
	if at < 0 {
		at += n
	}
	at = max(min(at, n), 0)
	l.items = append(append(append([]Value(nil), l.items[:at]...), a.or(1, "object", nil)), l.items[at:]...)
	return nil, nil
}

func listPop(r *run, v Value, a arguments) (Value, error) {
	l := v.(*List)
	i, err := intArgument(a, 0, "index", -1)
	if err := errors.Join(err, r.spend(len(l.items))); err != nil {
		return nil, err
	}
	at, ok := indexIn(i, len(l.items))
	if !ok {
		return nil, errors.New("pop index out of range")
	}
	item := l.items[at]
	l.items = append(append([]Value(nil), l.items[:at]...), l.items[at+1:]...)
	return item, nil
}

func dictGet(_ *run, v Value, a arguments) (Value, error) {
	if x, ok := v.(*Dict).get(a.or(0, "key", nil)); ok {
		return x, nil
	}
	return a.or(1, "default", nil), nil
}

func dictItems(r *run, v Value, _ arguments) (Value, error) {
	d := v.(*Dict)
	if err := r.spend(2 * d.Len()); err != nil {
		return nil, err
	}
	items := make([]Value, d.Len())
	for i, key := range d.keys {
		items[i] = &List{items: []Value{key, d.values[i]}, tuple: true, own: true}
	}
	return listOf(items), nil
}

func (r *run) listFrom(items []Value) (Value, error) {
	return listOf(append([]Value(nil), items...)), r.spend(len(items))
}

func dictUpdate(r *run, v Value, a arguments) (Value, error) {
	d := v.(*Dict)
	if other, ok := a.get(0, ""); ok {
		from, ok := other.(*Dict)
		if !ok {
			return nil, wrongType(other, fmt.Sprintf("'%s' object is not a mapping", typeName(other)))
		}
		if err := r.spend(from.Len()); err != nil {
			return nil, err
		}
		for i, key := range from.keys {
			d.set(key, from.values[i])
		}
	}
	for _, n := range a.named {
		d.Set(n.name, n.value)
	}
	return nil, nil
}

func dictPop(r *run, v Value, a arguments) (Value, error) {
	d := v.(*Dict)
	if err := r.spend(d.Len()); err != nil {
		return nil, err
	}
	if x, ok := d.remove(a.or(0, "key", nil)); ok {
		return x, nil
	}
	if x, ok := a.get(1, "default"); ok {
		return x, nil
	}
	return nil, errors.New("the key is not there")
}

func dictSetDefault(_ *run, v Value, a arguments) (Value, error) {
	d := v.(*Dict)
	key, value := a.or(0, "key", nil), a.or(1, "default", nil)
	if x, ok := d.get(key); ok {
		return x, nil
	}
	if !d.set(key, value) {
		return nil, fmt.Errorf("unhashable type: '%s'", typeName(key))
	}
	return value, nil
}
