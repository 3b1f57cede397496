package gguf

import (
	"encoding/binary"
	"fmt"
)

// cursor walks the head of a file. It keeps the first error and returns zeros
// after it, so that readers check once per record. No read passes limit, and no
// length is believed before it is compared with what remains.
type cursor struct {
	data  []byte
	pos   int
	limit int   // end of what may be read: of the file, or maxHead
	err   error // the first failure, at pos
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// remain returns the bytes left to read.
func (c *cursor) remain() int { return c.limit - c.pos }

// end says why reading cannot go on.
func (c *cursor) end() string {
	if c.limit < len(c.data) {
		return fmt.Sprintf("before the limit on metadata of %d bytes", c.limit)
	}
	return "before the end of the file (truncated?)"
}

// take returns the next n bytes, or nil.
func (c *cursor) take(n int, what string) []byte {
	if c.err != nil {
		return nil
	}
	if n > c.remain() {
		c.fail("%s needs %d bytes, %d remain %s", what, n, c.remain(), c.end())
		return nil
	}
	b := c.data[c.pos : c.pos+n : c.pos+n]
	c.pos += n
	return b
}

func (c *cursor) uint32(what string) uint32 {
	if b := c.take(4, what); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) uint64(what string) uint64 {
	if b := c.take(8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count reads a number of records, each of at least size bytes.
func (c *cursor) count(what string, size, most int) int {
	n := c.uint64("the number of " + what)
	switch {
	case c.err != nil:
		return 0
	case n > uint64(c.remain()/size):
		c.pos -= 8
		c.fail("the number of %s is %d: that exceeds the %d bytes that remain %s", what, n, c.remain()-8, c.end())
		return 0
	case n > uint64(most):
		c.pos -= 8
		c.fail("the number of %s is %d, want at most %d", what, n, most)
		return 0
	}
	return int(n)
}

// bytes reads a string: its length, then that many bytes.
func (c *cursor) bytes(what string, most int) []byte {
	n := c.uint64("the length of " + what)
	if c.err != nil {
		return nil
	}
	if n > uint64(c.remain()) {
		c.pos -= 8
		c.fail("the length of %s is %d bytes, %d remain %s", what, n, c.remain()-8, c.end())
		return nil
	}
	if n > uint64(most) {
		c.pos -= 8
		c.fail("the length of %s is %d bytes, want at most %d", what, n, most)
		return nil
	}
	return c.take(int(n), what)
}

// value reads a value of type t, which lies depth arrays deep.
func (c *cursor) value(t ValueType, depth int) Value {
	switch {
	case c.err != nil:
	case !t.valid():
		c.fail("value type is %d, want 0 to %d", uint32(t), len(valueTable)-1)
	case t == StringValue:
		return Value{typ: t, raw: c.bytes("a string", maxInt)}
	case t == ArrayValue:
		return c.array(depth + 1)
	default:
		raw := c.take(valueTable[t].bytes, "a value of type "+valueTable[t].name)
		if t == BoolValue {
			c.checkBools(raw)
		}
		return Value{typ: t, raw: raw}
	}
	return Value{}
}

// array reads an array: element type, length, elements. Numbers are skipped in
// one step, strings and arrays are walked.
func (c *cursor) array(depth int) Value {
	if depth > maxDepth {
		c.fail("arrays are nested more than %d deep", maxDepth)
		return Value{}
	}
	elem := ValueType(c.uint32("the element type of an array"))
	if c.err == nil && !elem.valid() {
		c.pos -= 4
		c.fail("element type of an array is %d, want 0 to %d", uint32(elem), len(valueTable)-1)
	}
	if c.err != nil {
		return Value{}
	}
	size := valueTable[elem].bytes
	n := c.count("elements of an array of "+elem.String(), size, maxInt)
	start := c.pos
	switch {
	case c.err != nil:
		return Value{}
	case elem == StringValue:
		c.skipStrings(n)
	case elem == ArrayValue:
		for i := 0; i < n && c.err == nil; i++ {
			c.array(depth + 1)
		}
	default:
		raw := c.take(n*size, "an array") // n*size <= remain: count checked
		if elem == BoolValue {
			c.checkBools(raw)
		}
	}
	if c.err != nil {
		return Value{}
	}
	return Value{typ: ArrayValue, elem: elem, n: n, raw: c.data[start:c.pos:c.pos]}
}

// skipStrings walks n strings. This loop is the cost of opening a model: some
// 300,000 tokens and merges.
func (c *cursor) skipStrings(n int) {
	data, pos := c.data[:c.limit], c.pos
	for i := range n {
		if len(data)-pos < 8 {
			c.pos = pos
			c.fail("string %d of %d needs 8 bytes for its length, %d remain %s", i, n, len(data)-pos, c.end())
			return
		}
		size := binary.LittleEndian.Uint64(data[pos:])
		if size > uint64(len(data)-pos-8) {
			c.pos = pos
			c.fail("the length of string %d of %d is %d bytes, %d remain %s", i, n, size, len(data)-pos-8, c.end())
			return
		}
		pos += 8 + int(size)
	}
	c.pos = pos
}

// checkBools demands 0 or 1: the format calls anything else invalid.
func (c *cursor) checkBools(raw []byte) {
	for _, b := range raw {
		if b > 1 {
			c.fail("a bool is %d, want 0 or 1", b)
			return
		}
	}
}
