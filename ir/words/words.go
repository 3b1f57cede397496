// Package words reads text forms whose lines are words: programs, kernels between
// two steps, values and schedules.
package words

import (
	"fmt"
	"strconv"
	"strings"

	"tgc/ir"
)

// Reader takes the words of a line one after the other. The first fault is kept;
// after it there are no more words, and what was read is not to be used.
type Reader struct {
	Form  string             // for messages: "program text"
	Nodes map[string]*ir.UOp // nodes that words may name, without the %
	Err   error

	line  int
	words []string // of the line
	next  int
}

// Line begins a line; lines count from 1. A quoted string is one word; a `#`
// outside of strings starts a comment.
func (r *Reader) Line(number int, text string) {
	r.line, r.words, r.next = number, nil, 0
	if r.Err == nil {
		r.words = split(text)
	}
}

func split(s string) []string {
	var words []string
	for {
		s = strings.TrimLeft(s, " \t\r")
		if s == "" || s[0] == '#' {
			return words
		}
		end := strings.IndexAny(s, " \t\r#")
		if s[0] == '"' {
			if quoted, err := strconv.QuotedPrefix(s); err == nil {
				end = len(quoted)
			}
		}
		if end <= 0 {
			end = len(s)
		}
		words = append(words, s[:end])
		s = s[end:]
	}
}

// Fail keeps the first fault.
func (r *Reader) Fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf("%s: line %d, word %d: %s", r.Form, r.line, r.next+1, fmt.Sprintf(format, args...))
	}
	r.words = nil
}

// More reports that the line has words left.
func (r *Reader) More() bool { return r.next < len(r.words) }

// Peek is the next word, empty at the end of the line.
func (r *Reader) Peek() string {
	if !r.More() {
		return ""
	}
	return r.words[r.next]
}

// Next takes the next word.
func (r *Reader) Next() string {
	word := r.Peek()
	r.next++
	return word
}

// Take takes the next word if it is this one.
func (r *Reader) Take(word string) bool {
	if !r.More() || r.Peek() != word {
		return false
	}
	r.next++
	return true
}

// Expect takes words that must come.
func (r *Reader) Expect(words ...string) {
	for _, word := range words {
		if !r.Take(word) {
			r.Fail("expected %q, got %q", word, r.Peek())
		}
	}
}

// End reports what is left of the line.
func (r *Reader) End() {
	if r.More() {
		r.Fail("expected the end of the line, got %q", r.Peek())
	}
}

// Int64 takes an integer.
func (r *Reader) Int64() int64 { return r.integer(64) }

// Int takes an integer of 32 bits.
func (r *Reader) Int() int { return int(r.integer(32)) }

func (r *Reader) integer(bits int) int64 {
	n, err := strconv.ParseInt(r.Peek(), 10, bits)
	if err != nil {
		r.Fail("expected an integer of %d bits, got %q", bits, r.Peek())
		return 0
	}
	r.next++
	return n
}

// Quoted takes a quoted string.
func (r *Reader) Quoted() string {
	s, err := strconv.Unquote(r.Peek())
	if err != nil || r.Peek()[0] != '"' {
		r.Fail("expected a quoted string, got %q", r.Peek())
		return ""
	}
	r.next++
	return s
}

// Name reports that the next word is the name of a value or a node.
func (r *Reader) Name() bool { return strings.HasPrefix(r.Peek(), "%") }

// Node takes the name of a node; nil after a fault.
func (r *Reader) Node() *ir.UOp {
	name, ok := strings.CutPrefix(r.Peek(), "%")
	u := r.Nodes[name]
	if !ok || u == nil {
		r.Fail("expected a node, got %q", r.Peek())
		return nil
	}
	r.next++
	return u
}

// List takes the names of nodes as long as there are any; it is never nil.
func (r *Reader) List() []*ir.UOp {
	list := []*ir.UOp{}
	for r.Name() {
		list = append(list, r.Node())
	}
	return list
}
