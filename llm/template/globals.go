package template

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// globals are the functions that every template has.
func globals(clock Clock) map[string]Value {
	all := map[string]Value{
		"range": &function{"range", rangeFunction}, "dict": &function{"dict", dictFunction},
		"namespace": &function{"namespace", namespaceFunction}, "raise_exception": &function{"raise_exception", raiseFunction},
		"joiner": &function{"joiner", joinerFunction}, "cycler": &function{"cycler", cyclerFunction},
	}
	if clock != nil {
		all["strftime_now"] = &function{"strftime_now", func(r *run, a arguments) (Value, error) {
			format, err := textArgument(a, 0, "format")
			if err := errors.Join(err, r.fits(64*len(format.s))); err != nil {
				return nil, err
			}
			text, err := formatTime(clock(), format.s)
			return Text{s: text}, err
		}}
	}
	return all
}

func raiseFunction(r *run, a arguments) (Value, error) {
	t, err := r.text(a.or(0, "message", Text{}))
	if err != nil {
		return nil, err
	}
	return nil, &raisedError{t.s}
}

func rangeFunction(r *run, a arguments) (Value, error) {
	bounds := [3]int64{0, 0, 1}
	n := len(a.positional)
	if n < 1 || n > 3 {
		return nil, fmt.Errorf("range takes 1 to 3 arguments, got %d", n)
	}
	for i := range n {
		v, err := intArgument(a, i, "of range", 0)
		if err != nil {
			return nil, err
		}
		bounds[i] = v
	}
	if n == 1 {
		bounds[0], bounds[1] = 0, bounds[0]
	}
	start, stop, step := bounds[0], bounds[1], bounds[2]
	if step == 0 {
		return nil, errors.New("range() arg 3 must not be zero")
	}
	out := listOf(nil)
	for i := start; step > 0 && i < stop || step < 0 && i > stop; {
		if err := r.spend(1); err != nil {
			return nil, err
		}
		out.items = append(out.items, i)
		next := i + step
		if (next > i) != (step > 0) {
			break
		}
		i = next
	}
	return out, nil
}

func dictFunction(r *run, a arguments) (Value, error) {
	d := NewDict()
	d.own = true
	if from, ok := a.get(0, ""); ok {
		switch from := from.(type) {
		case *Dict:
			d = from.copy()
		default:
			items, err := r.items(from)
			if err != nil {
				return nil, err
			}
			for _, item := range items {
				pair, err := r.unpack(item, 2)
				if err != nil {
					return nil, err
				}
				if !d.set(pair[0], pair[1]) {
					return nil, fmt.Errorf("unhashable type: '%s'", typeName(pair[0]))
				}
			}
		}
	}
	for _, n := range a.named {
		d.Set(n.name, n.value)
	}
	return d, r.spend(d.Len())
}

func namespaceFunction(r *run, a arguments) (Value, error) {
	d, err := dictFunction(r, a)
	if err != nil {
		return nil, err
	}
	return &namespace{d.(*Dict)}, nil
}

// joinerFunction makes a function that returns nothing the first time and a separator
// after that.
func joinerFunction(_ *run, a arguments) (Value, error) {
	separator, used := a.or(0, "sep", Text{s: ", "}), false
	return &function{"joiner", func(*run, arguments) (Value, error) {
		if !used {
			used = true
			return Text{}, nil
		}
		return separator, nil
	}}, nil
}

// cyclerFunction makes an object that goes round its items.
func cyclerFunction(_ *run, a arguments) (Value, error) {
	if len(a.positional) == 0 {
		return nil, errors.New("at least one item has to be provided")
	}
	at := 0
	d := NewDict()
	ns := &namespace{d}
	d.Set("current", a.positional[0])
	move := func(to int) {
		at = to % len(a.positional)
		d.Set("current", a.positional[at])
	}
	d.Set("next", &function{"next", func(*run, arguments) (Value, error) {
		v := a.positional[at]
		move(at + 1)
		return v, nil
	}})
	d.Set("reset", &function{"reset", func(*run, arguments) (Value, error) {
		move(0)
		return nil, nil
	}})
	return ns, nil
}

// timeFormats are the directives of C's strftime, in Go's terms.
var timeFormats = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon",
	'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'Z': "MST", 'z': "-0700", 'j': "002", 'F': "2006-01-02",
	'T': "15:04:05", 'D': "01/02/06", 'R': "15:04", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
}

// formatTime is strftime.
func formatTime(t time.Time, format string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		bare := format[i] == '-' && i+1 < len(format) // %-d: without the leading zero
		if bare {
			i++
		}
		switch layout, ok := timeFormats[format[i]]; {
		case format[i] == '%':
			b.WriteByte('%')
		case !ok:
			return "", fmt.Errorf("the directive %%%c is not known", format[i])
		case bare:
			text := strings.TrimLeft(t.Format(layout), "0 ")
			if text == "" {
				text = "0"
			}
			b.WriteString(text)
		default:
			b.WriteString(t.Format(layout))
		}
	}
	return b.String(), nil
}
