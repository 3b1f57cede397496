package events

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// version is what the first event of a file says.
const version = "brain.Event:2"

// Wire types of fields.
const (
	varint     = 0
	eightBytes = 1
	counted    = 2
	fourBytes  = 5
)

// The fields of the messages with their wire types.
const (
	fieldTime    = 1<<3 + eightBytes
	fieldStep    = 2<<3 + varint
	fieldVersion = 3<<3 + counted
	fieldSummary = 5<<3 + counted
	fieldValue   = 1<<3 + counted
	fieldTag     = 1<<3 + counted
	fieldScalar  = 2<<3 + fourBytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the checksum as records have it: rotated and offset, so that a checksum of data
// with checksums in it is no special value.
func masked(data []byte) uint32 {
	crc := crc32.Checksum(data, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// appendRecord frames an event.
func appendRecord(out, event []byte) []byte {
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(event)))
	out = append(out, length...)
	out = binary.LittleEndian.AppendUint32(out, masked(length))
	out = append(out, event...)
	return binary.LittleEndian.AppendUint32(out, masked(event))
}

func appendCounted(out []byte, field byte, data []byte) []byte {
	out = binary.AppendUvarint(append(out, field), uint64(len(data)))
	return append(out, data...)
}

// begin is the time of an event.
func begin(at time.Time) []byte {
	seconds := float64(at.UnixNano()) / 1e9
	return binary.LittleEndian.AppendUint64([]byte{fieldTime}, math.Float64bits(seconds))
}

// appendScalars is the record of values of a step.
func appendScalars(out []byte, at time.Time, step int, values map[string]float64) []byte {
	var summary []byte
	for _, tag := range slices.Sorted(maps.Keys(values)) {
		value := appendCounted(nil, fieldTag, []byte(tag))
		value = binary.LittleEndian.AppendUint32(append(value, fieldScalar), math.Float32bits(float32(values[tag])))
		summary = appendCounted(summary, fieldValue, value)
	}
	event := binary.AppendUvarint(append(begin(at), fieldStep), uint64(step))
	return appendRecord(out, appendCounted(event, fieldSummary, summary))
}

// Writer adds events to a file of its own. It holds no file open between them.
type Writer struct{ path string }

// NewWriter begins a file in a folder, which is made where it does not exist.
func NewWriter(folder string) (*Writer, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	now := time.Now()
	name := fmt.Sprintf("events.out.tfevents.%010d.%d.*", now.Unix(), os.Getpid())
	file, err := os.CreateTemp(folder, name)
	if err != nil {
		return nil, err
	}
	_, err = file.Write(appendRecord(nil, appendCounted(begin(now), fieldVersion, []byte(version))))
	if e := file.Close(); err == nil {
		err = e
	}
	return &Writer{path: file.Name()}, err
}

// Name is the file's name.
func (w *Writer) Name() string { return filepath.Clean(w.path) }

// Scalars writes the values of a step by their tags.
func (w *Writer) Scalars(step int, values map[string]float64) error {
	file, err := os.OpenFile(w.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(appendScalars(nil, time.Now(), step, values))
	if e := file.Close(); err == nil {
		err = e
	}
	return err
}
