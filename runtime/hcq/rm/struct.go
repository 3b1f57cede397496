package rm

import (
	"bufio"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:embed tables/*.txt
var tables embed.FS

// Field is a number in a structure, or an array of numbers.
type Field struct {
	Name   string
	Offset int // bytes
	Bytes  int // of an element: 1, 2, 4 or 8
	Count  int
}

// Struct is a structure as a 64-bit little-endian ABI lays it out; what has no name in it
// is zero.
type Struct struct {
	Name   string
	Since  int // release of the driver from which it is like this; 0 for all before the next
	Bytes  int
	Fields []Field
}

// ErrUnknown is wrapped where there is no such structure, field or value.
var ErrUnknown = errors.New("no such structure, field or value")

var structs = sync.OnceValue(func() map[string][]*Struct {
	all := make(map[string][]*Struct)
	var last *Struct
	readTable("structs", func(words []string) {
		if words[0] != "struct" {
			last.Fields = append(last.Fields, fieldFrom(words))
			return
		}
		last = &Struct{Name: words[1], Bytes: number(words[2])}
		if len(words) > 3 {
			last.Since = number(strings.TrimPrefix(words[3], "since="))
		}
		all[last.Name] = append(all[last.Name], last)
	})
	return all
})

// readTable calls row with the words of every line. A table is part of the program: a
// mistake in one is found by the tests, and panics.
func readTable(name string, row func(words []string)) {
	text, err := tables.ReadFile("tables/" + name + ".txt")
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if words := strings.Fields(line); len(words) > 0 {
			row(words)
		}
	}
}

// fieldFrom reads "offset bytes name" or "offset bytes*count name".
func fieldFrom(words []string) Field {
	bytes, count, array := strings.Cut(words[1], "*")
	f := Field{Name: words[2], Offset: number(words[0]), Bytes: number(bytes), Count: 1}
	if array {
		f.Count = number(count)
	}
	return f
}

func number(text string) int {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		panic(fmt.Sprintf("rm: table: %v", err))
	}
	return int(n)
}

// Lookup finds a structure as a release of the driver has it.
func Lookup(name string, release int) (*Struct, error) {
	var found *Struct
	for _, s := range structs()[name] {
		if s.Since <= release && (found == nil || s.Since > found.Since) {
			found = s
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w: %s of release %d", ErrUnknown, name, release)
	}
	return found, nil
}

// Value is a field, or an element of an array, and what it holds.
type Value struct {
	Field   string
	Element int
	Value   uint64
}

// Encode lays a structure out.
func (s *Struct) Encode(values ...Value) ([]byte, error) {
	out := make([]byte, s.Bytes)
	for _, v := range values {
		f, ok := s.field(v.Field)
		if !ok || v.Element < 0 || v.Element >= f.Count || f.Bytes < 8 && v.Value>>(8*f.Bytes) != 0 {
			return nil, fmt.Errorf("%w: %s.%s(%d) = %#x", ErrUnknown, s.Name, v.Field, v.Element, v.Value)
		}
		var whole [8]byte
		binary.LittleEndian.PutUint64(whole[:], v.Value)
		copy(out[f.Offset+v.Element*f.Bytes:], whole[:f.Bytes])
	}
	return out, nil
}

// Get reads an element of a field.
func (s *Struct) Get(b []byte, field string, element int) (uint64, error) {
	f, ok := s.field(field)
	if !ok || element < 0 || element >= f.Count || len(b) != s.Bytes {
		return 0, fmt.Errorf("%w: %s.%s(%d) in %d bytes", ErrUnknown, s.Name, field, element, len(b))
	}
	var whole [8]byte
	copy(whole[:f.Bytes], b[f.Offset+element*f.Bytes:])
	return binary.LittleEndian.Uint64(whole[:]), nil
}

func (s *Struct) field(name string) (Field, bool) {
	for _, f := range s.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}
