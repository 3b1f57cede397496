package events

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// Event is a record of a file.
type Event struct {
	Time    time.Time
	Step    int
	Version string             // of the first one
	Scalars map[string]float64 // by tag
}

// Read reads the events of a file's bytes; those before a mistake are given with it. Fields
// that it does not know are passed over.
func Read(data []byte) (list []Event, err error) {
	for at := 0; len(data) > 0; {
		payload, rest, err := record(data)
		if err != nil {
			return list, fmt.Errorf("events: record at byte %d: %w", at, err)
		}
		event, err := readEvent(payload)
		if err != nil {
			return list, fmt.Errorf("events: record at byte %d: %w", at, err)
		}
		at += len(data) - len(rest)
		list, data = append(list, event), rest
	}
	return list, nil
}

// record takes a record's data off the front.
func record(data []byte) (payload, rest []byte, err error) {
	const head, tail = 12, 4
	if len(data) < head+tail {
		return nil, nil, fmt.Errorf("%d bytes are left, want %d at least", len(data), head+tail)
	}
	if got := binary.LittleEndian.Uint32(data[8:]); got != masked(data[:8]) {
		return nil, nil, fmt.Errorf("the checksum of the length is %08x, want %08x", got, masked(data[:8]))
	}
	length := binary.LittleEndian.Uint64(data)
	if length > uint64(len(data)-head-tail) {
		return nil, nil, fmt.Errorf("%d bytes of data, only %d are left", length, len(data)-head-tail)
	}
	payload, rest = data[head:head+length], data[head+length:]
	if got := binary.LittleEndian.Uint32(rest); got != masked(payload) {
		return nil, nil, fmt.Errorf("the checksum of the data is %08x, want %08x", got, masked(payload))
	}
	return payload, rest[tail:], nil
}

// field is a field of a message: its number with the wire type, and what it holds.
type field struct {
	key    uint64
	number uint64 // of varints and of four and eight bytes
	bytes  []byte
}

var errShort = errors.New("the message ends within a field")

// fields takes a message apart.
func fields(message []byte, visit func(f field) error) error {
	for len(message) > 0 {
		var f field
		var n int
		if f.key, n = binary.Uvarint(message); n <= 0 {
			return errShort
		}
		message = message[n:]
		size := uint64(0)
		switch f.key & 7 {
		case varint:
			if f.number, n = binary.Uvarint(message); n <= 0 {
				return errShort
			}
			size = uint64(n)
		case eightBytes:
			size = 8
		case fourBytes:
			size = 4
		case counted:
			count, n := binary.Uvarint(message)
			if n <= 0 {
				return errShort
			}
			message, size = message[n:], count
		default:
			return fmt.Errorf("wire type %d", f.key&7)
		}
		if size > uint64(len(message)) {
			return errShort
		}
		f.bytes, message = message[:size], message[size:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

func readEvent(message []byte) (Event, error) {
	var e Event
	err := fields(message, func(f field) error {
		switch f.key {
		case fieldTime:
			seconds := math.Float64frombits(binary.LittleEndian.Uint64(f.bytes))
			e.Time = time.Unix(0, int64(seconds*1e9))
		case fieldStep:
			e.Step = int(f.number)
		case fieldVersion:
			e.Version = string(f.bytes)
		case fieldSummary:
			e.Scalars = make(map[string]float64)
			return fields(f.bytes, func(f field) error {
				if f.key != fieldValue {
					return nil
				}
				return e.readValue(f.bytes)
			})
		}
		return nil
	})
	return e, err
}

func (e *Event) readValue(message []byte) error {
	tag, value, known := "", 0.0, false
	err := fields(message, func(f field) error {
		switch f.key {
		case fieldTag:
			tag = string(f.bytes)
		case fieldScalar:
			value, known = float64(math.Float32frombits(binary.LittleEndian.Uint32(f.bytes))), true
		}
		return nil
	})
	if known {
		e.Scalars[tag] = value
	}
	return err
}
