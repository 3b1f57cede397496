package trace

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const first = "hcq-trace 1"

// mostLength bounds what a line may ask to be mapped, in bytes.
const mostLength = 1 << 36

// Parse reads a trace.
func Parse(text string) ([]*Event, error) {
	var events []*Event
	number, begun := 0, false
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case !begun && line == first:
			begun = true
		case !begun:
			return nil, fmt.Errorf("line %d: %q, want %q", number, shorten(line), first)
		default:
			e, err := parseLine(line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
			e.Line = number
			events = append(events, e)
		}
	}
	if !begun {
		return nil, fmt.Errorf("no line %q", first)
	}
	return events, nil
}

func shorten(text string) string {
	const most = 60
	if len(text) > most {
		return text[:most] + ".."
	}
	return text
}

// reader takes words from a line. The first mistake is err.
type reader struct {
	words []string
	err   error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// next is the next word; empty at the end, which is a mistake.
func (r *reader) next(what string) string {
	if len(r.words) == 0 {
		r.fail("%s is missing", what)
		return ""
	}
	w := r.words[0]
	r.words = r.words[1:]
	return w
}

// take takes a word if it is next.
func (r *reader) take(w string) bool {
	if len(r.words) > 0 && r.words[0] == w {
		r.words = r.words[1:]
		return true
	}
	return false
}

func (r *reader) want(w string) {
	if !r.take(w) {
		r.fail("%q is missing", w)
	}
}

func (r *reader) number(what string, bits int) uint64 {
	return r.parse(what, r.next(what), bits)
}

func (r *reader) parse(what, text string, bits int) uint64 {
	v, err := strconv.ParseUint(text, 16, bits)
	if err != nil {
		r.fail("%s %q, want a number of %d bits in hexadecimal", what, shorten(text), bits)
	}
	return v
}

func (r *reader) bytes(what, text string) []byte {
	b, err := hex.DecodeString(text)
	if err != nil {
		r.fail("%s %q, want bytes in hexadecimal", what, shorten(text))
	}
	return b
}

func (r *reader) pattern(what, text string) (p Pattern) {
	if len(text)%2 != 0 {
		r.fail("%s %q: half a byte", what, shorten(text))
		return p
	}
	for i := 0; i < len(text); i += 2 {
		if text[i:i+2] == ".." {
			if p.Any == nil {
				p.Any = make([]bool, len(text)/2)
			}
			p.Any[i/2] = true
			p.Bytes = append(p.Bytes, 0)
			continue
		}
		p.Bytes = append(p.Bytes, r.bytes(what, text[i:i+2])...)
	}
	p.Rest = strings.HasSuffix(text, "..")
	return p
}

// place reads NAME+OFFSET.
func (r *reader) place(e *Event) {
	name, offset, ok := strings.Cut(r.next("place"), "+")
	if !ok || name == "" {
		r.fail("a place, want NAME+OFFSET")
	}
	e.Name, e.Offset = name, r.parse("offset", offset, 48)
}

// errno tells the name of an error from a result.
func errno(text string) bool {
	return len(text) > 1 && text[0] == 'E' && strings.ToUpper(text) == text && !strings.ContainsFunc(text, func(c rune) bool { return c < 'A' || c > 'Z' })
}

func parseLine(line string) (*Event, error) {
	words := strings.Fields(line)
	e := &Event{Kind: Kind(words[0])}
	r := &reader{words: words[1:]}
	switch e.Kind {
	case Open:
		e.Path = r.next("path")
		r.want("=")
		if result := r.next("descriptor"); errno(result) {
			e.Result = result
		} else {
			e.FD = int(r.parse("descriptor", result, 31))
		}
	case Ioctl:
		r.ioctl(e)
	case Mmap:
		e.FD, e.Value = int(r.number("descriptor", 31)), r.number("length", 64)
		r.want("=")
		if e.Name = r.next("name"); errno(e.Name) {
			e.Name, e.Result = "", e.Name
		}
		if e.Value > mostLength {
			r.fail("a mapping of %#x bytes", e.Value)
		}
	case Store:
		r.place(e)
		e.Bytes = r.bytes("bytes", r.next("bytes"))
	case Doorbell:
		r.place(e)
		e.Value = r.number("value", 32)
	case Wait:
		r.place(e)
		r.want("geq")
		e.Value = r.number("value", 64)
	case Load:
		r.place(e)
		r.want("=")
		e.Out = r.pattern("bytes", r.next("bytes"))
	case Munmap:
		e.Name = r.next("name")
	case Close:
		e.FD = int(r.number("descriptor", 31))
	case Kernel:
		r.kernel(e)
	case GPU:
		e.Text, r.words = strings.Join(r.words, " "), nil
	case Publish:
	default:
		return nil, fmt.Errorf("%q is no event", shorten(words[0]))
	}
	if len(r.words) > 0 {
		r.fail("%q after the end", shorten(r.words[0]))
	}
	if r.err != nil {
		return nil, fmt.Errorf("%s: %w", e.Kind, r.err)
	}
	return e, nil
}

func (r *reader) ioctl(e *Event) {
	e.FD, e.Request = int(r.number("descriptor", 31)), uint32(r.number("request", 32))
	if len(r.words) > 0 && r.words[0] != "=" {
		argument := r.next("argument")
		if value, by := strings.CutPrefix(argument, "="); by {
			e.ByValue, e.Value = true, r.parse("value", value, 64)
		} else {
			e.Bytes = r.bytes("argument", argument)
		}
	}
	r.want("=")
	if e.Result = r.next("result"); e.Result != "0" && !errno(e.Result) {
		r.fail("result %q, want 0 or the name of an errno", shorten(e.Result))
	}
	if len(r.words) > 0 && r.words[0] != "|" {
		e.Out = r.pattern("result", r.next("result"))
	}
	if r.take("|") {
		e.Pointed, e.Pointee = true, r.pattern("pointee", r.next("pointee"))
	}
}

func (r *reader) kernel(e *Event) {
	e.Value, e.Needs = r.number("address", 64), make(map[string]uint64)
	for len(r.words) > 0 {
		key, value, ok := strings.Cut(r.next("key"), "=")
		switch {
		case ok && key == "name":
			e.Label = value
		case ok && slices.Contains(needs, key):
			e.Needs[key] = r.parse(key, value, 32)
		default:
			r.fail("%q is no key", shorten(key))
		}
	}
}

// Print writes a trace.
func Print(events []*Event) string {
	var b strings.Builder
	b.WriteString(first + "\n")
	for _, e := range events {
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}
