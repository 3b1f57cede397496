package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

const (
	prefixBytes = 8         // the header's length
	maxHeader   = 100 << 20 // bytes, from the format's description
	maxRank     = 64        // far beyond any use
	metadataKey = "__metadata__"
)

// entry is a tensor of the header with the place of its data.
type entry struct {
	Tensor
	begin, end int64 // bytes from the end of the header
	at         int64 // of the entry in the file
}

// parser walks the header token by token: encoding/json alone would take
// doubled keys, other spellings of keys, and numbers of any size.
type parser struct {
	f       *File
	dec     *json.Decoder
	entries []entry
}

func (f *File) parse(data []byte) error {
	if len(data) < prefixBytes {
		return &Error{File: f.name, Offset: 0, Err: fmt.Errorf("file is %d bytes, want at least %d", len(data), prefixBytes)}
	}
	size, room := binary.LittleEndian.Uint64(data), uint64(len(data)-prefixBytes)
	if size > room || size > maxHeader {
		return &Error{File: f.name, Offset: 0, Err: fmt.Errorf("header is %d bytes, want at most %d", size, min(room, maxHeader))}
	}
	header, body := data[prefixBytes:prefixBytes+size], data[prefixBytes+size:]
	if !utf8.Valid(header) {
		return &Error{File: f.name, Subject: "header", Offset: prefixBytes, Err: errors.New("is not UTF-8")}
	}
	p := &parser{f: f, dec: json.NewDecoder(bytes.NewReader(header))}
	p.dec.UseNumber()
	if err := p.header(); err != nil {
		var located *Error
		if errors.As(err, &located) {
			return err
		}
		return &Error{File: f.name, Subject: "header", Offset: p.offset(), Err: err}
	}
	return f.place(p.entries, body, int64(prefixBytes+size))
}

// offset is where the parser stands in the file.
func (p *parser) offset() int64 { return prefixBytes + p.dec.InputOffset() }

// header reads the whole header.
func (p *parser) header() error {
	err := p.object(func(key string) error {
		if key == metadataKey {
			return p.texts()
		}
		return p.tensor(key)
	})
	if err != nil {
		return err
	}
	if p.dec.More() {
		return errors.New("more follows the closing brace, want only spaces")
	}
	return nil
}

// object reads an object, calling member for every key; keys are unique.
func (p *parser) object(member func(key string) error) error {
	if err := p.delimiter('{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return err
		}
		key := token.(string) // the decoder takes nothing else before a colon
		if seen[key] {
			return fmt.Errorf("key %s stands twice", quote(key))
		}
		seen[key] = true
		if err := member(key); err != nil {
			return err
		}
	}
	return p.delimiter('}')
}

func (p *parser) delimiter(want json.Delim) error {
	token, err := p.dec.Token()
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("got %s, want %q", describe(token), rune(want))
	}
	return nil
}

// describe prints a token.
func describe(token json.Token) string {
	switch t := token.(type) {
	case string:
		return quote(t)
	case json.Delim:
		return strconv.QuoteRune(rune(t))
	case nil:
		return "null"
	}
	return fmt.Sprint(token)
}

func (p *parser) text() (string, error) {
	token, err := p.dec.Token()
	if err != nil {
		return "", err
	}
	text, ok := token.(string)
	if !ok {
		return "", fmt.Errorf("got %s, want a string", describe(token))
	}
	return text, nil
}

// texts reads "__metadata__".
func (p *parser) texts() error {
	return p.object(func(key string) (err error) {
		p.f.metadata[key], err = p.text()
		return err
	})
}

// numbers reads an array of integers from 0 on.
func (p *parser) numbers(limit int) ([]int, error) {
	if err := p.delimiter('['); err != nil {
		return nil, err
	}
	list := []int{}
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return nil, err
		}
		number, _ := token.(json.Number)
		n, err := strconv.ParseUint(string(number), 10, 64)
		if err != nil || n > math.MaxInt {
			return nil, fmt.Errorf("got %s, want an integer of at least 0", describe(token))
		}
		if len(list) == limit {
			return nil, fmt.Errorf("more than %d numbers", limit)
		}
		list = append(list, int(n))
	}
	return list, p.delimiter(']')
}

// tensor reads one tensor's entry.
func (p *parser) tensor(name string) error {
	e := entry{Tensor: Tensor{Name: name}, at: p.offset()}
	var offsets []int
	err := p.object(func(key string) (err error) {
		switch key {
		case "dtype":
			var dtype string
			dtype, err = p.text()
			e.DType = DType(dtype)
		case "shape":
			e.Shape, err = p.numbers(maxRank)
		case "data_offsets":
			offsets, err = p.numbers(2)
		default:
			err = fmt.Errorf("key %s, want dtype, shape or data_offsets", quote(key))
		}
		return err
	})
	if err == nil {
		err = e.check(offsets)
	}
	if err != nil {
		return &Error{File: p.f.name, Subject: "tensor " + quote(name), Offset: p.offset(), Err: err}
	}
	p.entries = append(p.entries, e)
	return nil
}

// check completes an entry by its offsets.
func (e *entry) check(offsets []int) error {
	switch {
	case e.DType == "":
		return errors.New("dtype is missing")
	case e.Shape == nil:
		return errors.New("shape is missing")
	case len(offsets) != 2:
		return fmt.Errorf("data_offsets are %v, want two numbers", offsets)
	}
	size, err := byteSize(e.DType, e.Shape)
	if err != nil {
		return err
	}
	if offsets[1]-offsets[0] != size { // both are at least 0: no overflow
		return fmt.Errorf("data_offsets are %v, want %d bytes for %s %v", offsets, size, e.DType, e.Shape)
	}
	e.begin, e.end = int64(offsets[0]), int64(offsets[1])
	return nil
}

// place checks that the entries fill the data, which starts at byte start of the
// file, and gives each its part.
func (f *File) place(entries []entry, body []byte, start int64) error {
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.Name, b.Name))
	})
	at := int64(0)
	for i, e := range entries {
		fault := func(err error) error {
			return &Error{File: f.name, Subject: "tensor " + quote(e.Name), Offset: e.at, Err: err}
		}
		switch {
		case e.begin != at:
			return fault(fmt.Errorf("data begins at %d, want %d, where the tensor before it ends", e.begin, at))
		case e.end > int64(len(body)):
			return fault(fmt.Errorf("data ends at %d, want at most %d", e.end, len(body)))
		}
		at = e.end
		t := e.Tensor
		t.Data = body[e.begin:e.end:e.end]
		f.tensors = append(f.tensors, t)
		f.index[e.Name] = i
	}
	if at != int64(len(body)) {
		return &Error{File: f.name, Offset: start + at, Err: fmt.Errorf("%d bytes belong to no tensor", int64(len(body))-at)}
	}
	return nil
}
