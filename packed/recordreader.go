package packed

import (
	"encoding/binary"
	"fmt"
	"io"

	"tgc/internal/mapfile"
)

// RecordReader reads a tensor in GGUF's order as Records lays it out: what Convert makes, tile
// after tile. ReadAt may be called from several goroutines.
type RecordReader struct {
	format       *Format
	rows, blocks int64
	records      Placement
	runs         [][]int64 // of each field, where its runs lie in a record
	data         []byte
	code         *code // the data are in its source's blocks; nil: in those of format
}

var _ io.ReaderAt = (*RecordReader)(nil)

// NewRecordReader makes the reader of a tensor of rows x blocksPerRow blocks.
func NewRecordReader(f *Format, rows, blocksPerRow int64, data []byte) *RecordReader {
	records := Records.Place(f, rows, blocksPerRow)
	return &RecordReader{format: f, rows: rows, blocks: blocksPerRow, records: records, runs: runsOf(f, &records), data: data}
}

// NewRecodedReader makes the reader of a tensor in the file's format, of which the records are of a format that Recoded
// gives for it, with so many blocks of that one in a row.
func NewRecodedReader(f, to *Format, rows, blocksPerRow int64, data []byte) (*RecordReader, error) {
	c := codeBetween(f, to)
	if c == nil {
		return nil, fmt.Errorf("packed: %s is no other code of %s", to.Name, f.Name)
	}
	r := NewRecordReader(to, rows, blocksPerRow, data)
	r.code = c
	if want := rows * blocksPerRow * int64(c.sourceBytes()); int64(len(data)) != want {
		return nil, fmt.Errorf("packed: got %d bytes, want %d (%d rows of %d weights of %s)", len(data), want, rows, blocksPerRow*int64(to.BlockElems), f.Name)
	}
	return r, nil
}

// Size is the number of bytes of all records.
func (r *RecordReader) Size() int64 { return r.records.Bytes }

// ReadAt fills p with the bytes from an offset.
func (r *RecordReader) ReadAt(p []byte, offset int64) (n int, err error) {
	failed := mapfile.Guard(func() error { n, err = r.readAt(p, offset); return nil }) // the data may be a mapped file
	if failed != nil {
		return 0, failed
	}
	return n, err
}

func (r *RecordReader) readAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 || offset > r.records.Bytes {
		return 0, io.EOF
	}
	if left := r.records.Bytes - offset; int64(len(p)) > left {
		p, err = p[:left], io.EOF
	}
	size := r.blocks * int64(r.format.BlockBytes) * RecordRows
	for n < len(p) {
		tile, within := (offset+int64(n))/size, (offset+int64(n))%size
		if within == 0 && int64(len(p)-n) >= size {
			r.tile(tile, p[n:][:size])
			n += int(size)
			continue
		}
		whole := make([]byte, size)
		r.tile(tile, whole)
		n += copy(p[n:], whole[within:])
	}
	return n, err
}

// tile lays out the records of a tile of rows.
func (r *RecordReader) tile(tile int64, out []byte) {
	block := int64(r.format.BlockBytes)
	row := r.blocks * block
	first := tile * RecordRows
	count := min(RecordRows, r.rows-first)
	if count < RecordRows {
		clear(out)
	}
	rows := r.blocksOf(first, count)
	for number := range r.blocks {
		for i := range r.format.Fields {
			fd, place := &r.format.Fields[i], &r.records.Fields[i]
			to := out[number*place.BlockStride+place.Base : (number+1)*place.BlockStride]
			for lane := range count {
				interleave(to[lane*place.RowStride:], rows[lane*row+number*block:][:block], fd, place, r.runs[i])
			}
		}
	}
}

// blocksOf are the blocks of some rows.
func (r *RecordReader) blocksOf(first, count int64) []byte {
	row := r.blocks * int64(r.format.BlockBytes)
	if r.code == nil {
		return r.data[first*row:][:count*row]
	}
	source := r.blocks * int64(r.code.sourceBytes())
	rows := make([]byte, count*row)
	r.code.recodeBlocks(rows, r.data[first*source:][:count*source])
	return rows
}

// runsOf lists, for each field, where its runs lie in a record.
func runsOf(f *Format, records *Placement) [][]int64 {
	list := make([][]int64, len(f.Fields))
	for i, place := range records.Fields {
		for n := range int64(f.Fields[i].Count) / place.Run {
			list[i] = append(list[i], place.runAt(n))
		}
	}
	return list
}

// interleave writes a field of one block with the distance that other rows leave.
func interleave(to, block []byte, fd *Field, place *FieldPlace, runs []int64) {
	run, stride := fd.run()
	size, step := int(place.Size), int(place.RunStride)
	for first := 0; first < fd.Count; first += run {
		from := block[fd.Offset+first/run*stride:][:run*size]
		switch {
		case place.Run == recordWord && run%recordWord == 0:
			for _, at := range runs[first/recordWord:] {
				if len(from) < recordWord {
					break
				}
				binary.LittleEndian.PutUint32(to[at:], binary.LittleEndian.Uint32(from))
				from = from[recordWord:]
			}
		case place.Run == 1 && size == 1:
			to := to[first*step:]
			for j, b := range from {
				to[j*step] = b
			}
		case place.Run == 1 && size == 2:
			to := to[first*step:]
			for at := 0; len(from) >= 2; at += step {
				to[at], to[at+1] = from[0], from[1]
				from = from[2:]
			}
		default:
			for j := range run {
				at := int64(first + j)
				copy(to[runs[at/place.Run]+at%place.Run*place.Size:][:size], from[j*size:])
			}
		}
	}
}
