package packed

import (
	"cmp"
	"io"

	"tgc/internal/mapfile"
)

// PlaneReader reads a tensor in GGUF's order as Planes lays it out: what Convert
// makes, in pieces, so that the copy to a device goes on while the next piece is
// laid out, and nothing is as large as the tensor. ReadAt may be called from
// several goroutines.
type PlaneReader struct {
	format       *Format
	rows, blocks int64
	planes       Placement
	data         []byte
}

var _ io.ReaderAt = (*PlaneReader)(nil)

// NewPlaneReader makes the reader of a tensor of rows x blocksPerRow blocks.
func NewPlaneReader(f *Format, rows, blocksPerRow int64, data []byte) *PlaneReader {
	return &PlaneReader{format: f, rows: rows, blocks: blocksPerRow, planes: Planes.Place(f, rows, blocksPerRow), data: data}
}

// Size is the number of bytes of all planes.
func (r *PlaneReader) Size() int64 { return r.planes.Bytes }

// ReadAt fills p with the bytes from an offset.
func (r *PlaneReader) ReadAt(p []byte, offset int64) (n int, err error) {
	failed := mapfile.Guard(func() error { n, err = r.readAt(p, offset); return nil }) // the data may be a mapped file
	return n, cmp.Or(failed, err)
}

func (r *PlaneReader) readAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 || offset > r.planes.Bytes {
		return 0, io.EOF
	}
	if left := r.planes.Bytes - offset; int64(len(p)) > left {
		p, err = p[:left], io.EOF
	}
	for i := range r.format.Fields {
		place := r.planes.Fields[i]
		for len(p) > n {
			at := offset + int64(n) - place.Base
			row, within := at/place.RowStride, at%place.RowStride
			if at < 0 || row >= r.rows {
				break
			}
			n += r.row(&r.format.Fields[i], row, within, p[n:min(int64(len(p)), int64(n)+place.RowStride-within)])
		}
	}
	return n, err
}

// row fills p with a row of a plane from a byte of the row on, padding included.
func (r *PlaneReader) row(f *Field, row, from int64, p []byte) int {
	size, block := int64(f.Bytes()), int64(r.format.BlockBytes)
	elements, stride := f.run()
	source := r.data[row*r.blocks*block:][:r.blocks*block]
	if f.Apart.Count > 1 {
		return r.pieces(f, source, from, p)
	}
	n := 0
	for n < len(p) {
		at := from + int64(n)
		number, within := at/size, at%size
		if number >= r.blocks {
			clear(p[n:])
			break
		}
		bytes := source[number*block+int64(f.Offset):]
		run := elements * f.DType.Size()
		if within == 0 && run == int(size) {
			n += wholeBlocks(p[n:], bytes, int(size), int(block))
			if n == len(p) {
				break
			}
			if at = from + int64(n); at/size != number {
				continue
			}
		}
		inside := int(within) % run
		n += copy(p[n:], bytes[int(within)/run*stride+inside:][:run-inside])
	}
	return len(p)
}

// pieces is the same of a field with pieces apart.
func (r *PlaneReader) pieces(f *Field, source []byte, from int64, p []byte) int {
	block, count, tile := int64(r.format.BlockBytes), int64(f.Apart.Count), f.Apart.tile(r.blocks)
	run := int64(f.Apart.Unit) * pieceBytes // side by side in both orders
	part := int64(f.Bytes()) / count        // of a block, with one digit
	n := 0
	for n < len(p) {
		at := from + int64(n)
		first, digit, number, within := at/(tile*part*count)*tile, at/(tile*part)%count, at/part%tile, at%part
		if first >= r.blocks {
			clear(p[n:])
			break
		}
		start := (first+number)*block + int64(f.Offset) + digit*run
		if within == 0 && int64(len(p)-n) >= part {
			whole := min(int64(len(p)-n)/part, tile-number)
			partsOfBlocks(p[n:int64(n)+whole*part], source[start:], int(run), int(run*count), int(part), int(block))
			n += int(whole * part)
			continue
		}
		n += copy(p[n:], source[start+within/run*run*count+within%run:][:run-within%run])
	}
	return len(p)
}

// partsOfBlocks copies runs that lie at a distance in a block, of as many blocks as p has room for.
func partsOfBlocks(p, source []byte, run, distance, part, block int) {
	for ; len(p) > 0; p = p[part:] {
		from := source
		for to := p[:part]; len(to) > 0; to = to[run:] {
			for i := 0; i < run; i += pieceBytes {
				*(*[pieceBytes]byte)(to[i:]) = *(*[pieceBytes]byte)(from[i:])
			}
			from = from[min(distance, len(from)):]
		}
		source = source[min(block, len(source)):]
	}
}

// wholeBlocks copies a field of as many blocks as p has room for: where the
// time goes. Two bytes, which a scale has, are moved without a call.
func wholeBlocks(p, source []byte, size, block int) int {
	n := 0
	if size == 2 {
		for ; n+2 <= len(p) && len(source) >= 2; n += 2 {
			p[n], p[n+1] = source[0], source[1]
			source = source[min(block, len(source)):]
		}
		return n
	}
	for ; n+size <= len(p) && len(source) >= size; n += size {
		copy(p[n:n+size], source)
		source = source[min(block, len(source)):]
	}
	return n
}
