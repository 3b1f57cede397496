package huggingface

import (
	"encoding/binary"
	"fmt"
	"math"
)

// wireField is one field of a message in protobuf's wire format: a number or bytes, as its
// kind says.
type wireField struct {
	number uint64
	kind   wireKind
	value  uint64 // of a varint, or the bits of a fixed number
	bytes  []byte
}

type wireKind uint64

const (
	wireVarint  wireKind = 0
	wireFixed64 wireKind = 1
	wireBytes   wireKind = 2
	wireFixed32 wireKind = 5
)

// bool and float are the value as what the definition of the message says it is.
func (f *wireField) bool() bool     { return f.value != 0 }
func (f *wireField) float() float32 { return math.Float32frombits(uint32(f.value)) }

// readWire takes the fields of a message one after the other.
func readWire(message []byte, take func(wireField) error) error {
	rest := message
	for len(rest) > 0 {
		at := len(message) - len(rest)
		f, n, err := nextField(rest)
		if err != nil {
			return fmt.Errorf("byte %d of %d: %w", at, len(message), err)
		}
		if err := take(f); err != nil {
			return fmt.Errorf("field %d at byte %d: %w", f.number, at, err)
		}
		rest = rest[n:]
	}
	return nil
}

// nextField is the first field and how many bytes it has.
func nextField(b []byte) (f wireField, n int, err error) {
	tag, n := binary.Uvarint(b)
	if n <= 0 {
		return f, 0, fmt.Errorf("there is no tag of a field")
	}
	f.number, f.kind = tag>>3, wireKind(tag&7)
	size := 0
	switch f.kind {
	case wireVarint:
		if f.value, size = binary.Uvarint(b[n:]); size <= 0 {
			return f, 0, fmt.Errorf("field %d has no number", f.number)
		}
	case wireFixed32:
		size = 4
	case wireFixed64:
		size = 8
	case wireBytes:
		length, m := binary.Uvarint(b[n:])
		if n += max(m, 0); m <= 0 || length > uint64(len(b)-n) {
			return f, 0, fmt.Errorf("field %d has %d bytes, %d are left", f.number, length, len(b)-n)
		}
		size = int(length)
	default:
		return f, 0, fmt.Errorf("field %d is of kind %d, want 0, 1, 2 or 5", f.number, f.kind)
	}
	if size > len(b)-n {
		return f, 0, fmt.Errorf("field %d has %d bytes, %d are left", f.number, size, len(b)-n)
	}
	switch data := b[n : n+size]; f.kind {
	case wireFixed32:
		f.value = uint64(binary.LittleEndian.Uint32(data))
	case wireFixed64:
		f.value = binary.LittleEndian.Uint64(data)
	case wireBytes:
		f.bytes = data
	}
	return f, n + size, nil
}
