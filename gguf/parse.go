package gguf

import (
	"bytes"
	"fmt"
	"math/bits"
)

const (
	magic            = "GGUF"
	version2         = 2
	version3         = 3
	defaultAlignment = 32
	alignmentKey     = "general.alignment"
)

// Smallest sizes in the file, which bound how many records can follow.
const (
	minKeyBytes    = 8 + 1 + 4 + 1         // length, name, type, value
	minTensorBytes = 8 + 1 + 4 + 8 + 4 + 8 // length, name, rank, one dimension, type, offset
)

// parser reads one file (one shard of a split model) into f.
type parser struct {
	cursor
	f *File
}

// parse fills f from data: head, metadata, tensors, and checks the layout.
func parse(f *File, data []byte) error {
	p := &parser{cursor: cursor{data: data, limit: min(len(data), maxHead)}, f: f}
	keys, tensors, err := p.header()
	if err != nil {
		return err
	}
	if err := p.metadata(keys); err != nil {
		return err
	}
	if err := p.alignment(); err != nil {
		return err
	}
	if err := p.tensorList(tensors); err != nil {
		return err
	}
	return p.layout(data)
}

func (p *parser) errorAt(subject string, offset int, err error) error {
	return &Error{File: p.f.name, Subject: subject, Offset: int64(offset), Err: err}
}

// header reads magic, version and the two counts.
func (p *parser) header() (keys, tensors int, err error) {
	if !bytes.HasPrefix(p.data, []byte(magic)) {
		return 0, 0, p.errorAt("", 0, notGGUF(p.data))
	}
	p.pos = len(magic)
	version := p.uint32("the version")
	switch {
	case p.err != nil:
	case version == version2 || version == version3:
	case version == 1:
		p.fail("version is 1, want 2 or 3 (version 1 has 32-bit lengths; convert the model again)")
	case version&0xffff == 0 && bits.ReverseBytes32(version) <= version3 && version != 0:
		p.fail("version is 0x%08x: the file is big-endian, want a little-endian file of version 2 or 3", version)
	default:
		p.fail("version is %d, want 2 or 3", version)
	}
	if p.err != nil {
		return 0, 0, p.errorAt("header", len(magic), p.err)
	}
	p.f.version = int(version)
	tensors = p.count("tensors", minTensorBytes, maxTensors)
	keys = p.count("metadata keys", minKeyBytes, maxKeys)
	if p.err != nil {
		return 0, 0, p.errorAt("header", p.pos, p.err)
	}
	return keys, tensors, nil
}

// lookalikes are what people hand in for a GGUF file.
var lookalikes = []struct{ prefix, what string }{
	{"\x1f\x8b", "gzip data; decompress it first"},
	{"version https://git-lfs", "a Git LFS pointer; fetch the file itself"},
	{"<", "a web page; the download failed"},
	{"PK\x03\x04", "a zip archive or a PyTorch checkpoint"},
	{"ggml", "an old GGML file; convert the model again"},
	{"ggjt", "an old GGML file; convert the model again"},
	{"lmgg", "an old GGML file; convert the model again"},
	{"tjgg", "an old GGML file; convert the model again"},
	{"FUGG", "a GGUF file with its bytes swapped"},
}

// notGGUF explains a file that does not start with the magic.
func notGGUF(data []byte) error {
	if len(data) < len(magic) {
		return fmt.Errorf("not a GGUF file: it is %d bytes long, want at least %d", len(data), len(magic)+4+8+8)
	}
	hint := ""
	for _, l := range lookalikes {
		if bytes.HasPrefix(data, []byte(l.prefix)) {
			hint = ": this looks like " + l.what
		}
	}
	if len(data) > 8 && data[8] == '{' {
		hint = ": this looks like a safetensors file"
	}
	return fmt.Errorf("not a GGUF file: magic is %s, want %q%s", Quote(string(data[:len(magic)])), magic, hint)
}

// metadata reads the key-value pairs.
func (p *parser) metadata(n int) error {
	f := p.f
	f.index = make(map[string]int, min(n, 1024))
	for i := range n {
		start := p.pos
		name := p.bytes("a key", maxKeyLength)
		if p.err == nil && len(name) == 0 {
			p.fail("the key is empty")
		}
		if p.err != nil {
			return p.errorAt(fmt.Sprintf("metadata key %d of %d", i, n), start, p.err)
		}
		key := string(name)
		if _, again := f.index[key]; again {
			return p.errorAt("key "+Quote(key), start, fmt.Errorf("duplicate key: it appears twice, want once"))
		}
		at := p.pos
		value := p.value(ValueType(p.uint32("the value type")), 0)
		if p.err != nil {
			return p.errorAt("key "+Quote(key), max(at, p.pos), p.err)
		}
		f.index[key] = len(f.pairs)
		f.pairs = append(f.pairs, pair{key: key, value: value, offset: int64(at)})
	}
	return nil
}

// alignment takes the alignment of tensor data from the metadata.
func (p *parser) alignment() error {
	p.f.alignment = defaultAlignment
	i, ok := p.f.index[alignmentKey]
	if !ok {
		return nil
	}
	v := p.f.pairs[i].value
	fault := func(err error) error {
		return p.errorAt("key "+Quote(alignmentKey), int(p.f.pairs[i].offset), err)
	}
	if valueTable[v.typ].kind != unsignedKind {
		return fault(v.mismatch("an unsigned integer"))
	}
	n := v.bits()
	if n < minAlignment || n&(n-1) != 0 || n > 1<<32 {
		return fault(fmt.Errorf("alignment is %d, want a power of two from %d to 2^32", n, minAlignment))
	}
	p.f.alignment = int(n)
	return nil
}

// tensorList reads the tensors' names, shapes, types and offsets.
func (p *parser) tensorList(n int) error {
	f := p.f
	f.tensorIndex = make(map[string]int, min(n, 1024))
	for i := range n {
		start := p.pos
		name := p.bytes("a tensor name", maxNameLength)
		if p.err == nil && len(name) == 0 {
			p.fail("the tensor name is empty")
		}
		if p.err != nil {
			return p.errorAt(fmt.Sprintf("tensor %d of %d", i, n), start, p.err)
		}
		t := Tensor{Name: string(name)}
		p.tensorInfo(&t)
		if p.err == nil {
			if _, again := f.tensorIndex[t.Name]; again {
				p.fail("duplicate tensor: the name appears twice, want once")
			}
		}
		if p.err != nil {
			return p.errorAt("tensor "+Quote(t.Name), start, p.err)
		}
		f.tensorIndex[t.Name] = len(f.tensors)
		f.tensors = append(f.tensors, t)
	}
	return nil
}

// tensorInfo reads what follows a tensor's name. Offset is left relative to the
// data section, whose place is not known yet.
func (p *parser) tensorInfo(t *Tensor) {
	rank := p.uint32("the number of dimensions")
	if p.err == nil && (rank < 1 || rank > maxDims) {
		p.fail("the number of dimensions is %d, want 1 to %d", rank, maxDims)
	}
	if p.err != nil {
		return
	}
	t.Dims = make([]int, rank)
	for i := range t.Dims {
		d := p.uint64("a dimension")
		if p.err == nil && (d < 1 || d > maxInt) {
			p.fail("dimension %d is %d, want 1 to 2^63-1", i, d)
		}
		t.Dims[i] = int(d)
	}
	t.Type = Type(p.uint32("the tensor type"))
	offset := p.uint64("the tensor's offset")
	switch {
	case p.err != nil:
		return
	case !t.Type.Valid():
		p.fail("tensor type is %d, which is not defined", uint32(t.Type))
		return
	case offset%uint64(p.f.alignment) != 0:
		p.fail("offset is %d, want a multiple of the alignment %d", offset, p.f.alignment)
		return
	case offset > uint64(len(p.data)):
		p.fail("offset is %d, past the end of the file of %d bytes (truncated?)", offset, len(p.data))
		return
	}
	t.Offset = int64(offset)
	size, err := tensorBytes(t.Type, t.Dims)
	if err != nil {
		p.fail("%w", err)
		return
	}
	t.size = size
}
