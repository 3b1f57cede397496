package packed

import (
	"slices"
	"sync"

	"tgc/ir"
)

// RecordRows is how many rows lie interleaved in a record: the lanes of a register of
// 64 bytes with a word of four bytes each.
const RecordRows = 16

// recordWord is the number of bytes of a row that lie together in a record: what one lane
// of 32 bits holds.
const recordWord = 4

// Records interleaves rows for CPUs. A record holds one block of each of RecordRows rows; a
// vector of it holds the same elements of all these rows, so that lanes are rows: scales are
// vectors, sums are never folded over lanes, and a tile of rows is read as one stream. Scales come first, field after
// field, then the words of weights in the order in which a sweep over the weights reads them (recordWords): what is
// read out of the order of addresses is not what a core expects next. Rows past the last are zero.
//
//	scales, minima     [j][row]
//	bytes of weights   [j/4][row][j%4]
var Records Layout = records{}

type records struct{}

func (records) Name() string { return "records" }

func (records) Place(f *Format, rows, blocksPerRow int64) Placement {
	record := int64(f.BlockBytes) * RecordRows
	tiles := (rows + RecordRows - 1) / RecordRows
	p := Placement{Bytes: tiles * blocksPerRow * record}
	words, orders := record-f.recordWordBytes(), recordWords()[f.Name]
	at := int64(0)
	for i := range f.Fields {
		fd := &f.Fields[i]
		run := fd.recordRun(f)
		size := int64(fd.DType.Size())
		place := FieldPlace{
			Base:        at,
			Tile:        RecordRows,
			TileStride:  blocksPerRow * record,
			RowStride:   run * size,
			BlockStride: record,
			RunStride:   RecordRows * run * size,
			Run:         run,
			Size:        size,
		}
		switch order, ordered := orders[fd.Name]; {
		case ordered: // of one word there are no digits
			place.Base, place.Digits = words+order.first, order.digits
		case run == recordWord:
			place.Base = words
			words += int64(fd.Bytes()) * RecordRows
		default:
			at += int64(fd.Bytes()) * RecordRows
		}
		p.Fields = append(p.Fields, place)
	}
	return p
}

// recordRun is how many elements of a row lie together: a word of what holds a byte for every
// eight weights or fewer, one of scales.
func (f *Field) recordRun(of *Format) int64 {
	if f.DType.Size() == 1 && f.Count%recordWord == 0 && f.Count*8 >= of.BlockElems {
		return recordWord
	}
	return 1
}

// Interleaves reports a tensor that Records may hold: matrices of whole tiles and blocks, in a type whose
// numbers are bytes and take so many bits a weight at most. Each of several matrices begins with a tile, so that
// lanes are rows of one of them whichever a step chooses.
func (f *Format) Interleaves(shape []int64, bits int) bool {
	n := len(shape)
	if f.IsPlain() || n < 2 || shape[n-2]%RecordRows != 0 || shape[n-1]%int64(f.BlockElems) != 0 || slices.Min(shape) == 0 {
		return false
	}
	return f.InWords() && f.BlockBytes*8 <= bits*f.BlockElems
}

// WholeBytes reports a type that stores each weight as a byte: nothing is masked or shifted out of it.
func (f *Format) WholeBytes() bool {
	return slices.ContainsFunc(f.Fields, func(fd Field) bool { return fd.DType.Size() == 1 && fd.Count == f.BlockElems })
}

// RecordBits is the most bits a weight for which records usually pay: wider ones are bound by memory in
// the file's order too. Exact decode of LLaMA 1B Q6_K (6.6 bits) fell on one Intel core from 11.5
// to 9.7 and 10.4 tokens a second, Q4_0 rose from 12.7 to 14.7.
const RecordBits = 6

// MostRecordBits are those of the widest weights whose rows may be interleaved: Q8_0 has 8.5.
const MostRecordBits = 9

// inWords are the formats whose weights are taken out of words of bytes with masks and shifts
// alone, as lanes that are rows want them: no table but one that
// a register holds, no product, no sign but that of a whole byte, and no wider integer but one whose bits all weights of a word share.
var inWords = sync.OnceValue(func() map[string]bool {
	out := make(map[string]bool)
	for _, f := range formats {
		if !f.IsPlain() {
			out[f.Name] = f.masksWords()
		}
	}
	for i := range codes {
		out[codes[i].to.Name] = codes[i].to.masksWords()
	}
	return out
})

// InWords reports a format whose weights are taken out of words.
func (f *Format) InWords() bool { return inWords()[f.Name] }

func (f *Format) masksWords() (inWords bool) {
	for _, u := range f.decoded() {
		switch {
		case u.Op == ir.OpLoad && !IsShortTable(u.Src[0]):
			return false
		case u.Op == ir.OpLoad, u.Op == ir.OpTable, u.Op == ir.OpParam:
		case u.Op == ir.OpField:
			fd, _ := f.Field(u.Arg.(ir.FieldArg).Field)
			run := fd.recordRun(f)
			inWords = inWords || run == recordWord
			if fd.DType.IsInt() && fd.DType.Size() > 1 && !f.sharedByWord(u.Src[3]) || run == recordWord && (fd.DType.Size() != 1 || indexAt(u.Src[3], 1) != indexAt(u.Src[3], 0)+1) {
				return false
			}
		case u.DType.IsInt() && u.DType.Size() > 1 && (u.Op == ir.OpShl || u.Op == ir.OpShr) && !f.sharedByWord(u.Src[1]):
			return false
		case u.DType.IsInt() && u.DType.Size() == 1 && !slices.Contains([]ir.Op{ir.OpConst, ir.OpCast, ir.OpAnd, ir.OpOr, ir.OpXor, ir.OpShl, ir.OpShr, ir.OpWhere}, u.Op):
			return false
		}
	}
	return inWords
}

// sharedByWord reports an index, or an amount to shift by, that is the same for all weights of a word: what is read for it, too.
func (f *Format) sharedByWord(x *ir.UOp) bool {
	for x.Op == ir.OpCast {
		x = x.Src[0]
	}
	if x.DType != ir.Idx {
		return !slices.ContainsFunc(ir.Toposort(x), func(u *ir.UOp) bool { return u.Op == ir.OpField && !f.sharedByWord(u.Src[3]) })
	}
	for k := range int64(f.BlockElems) {
		if indexAt(x, k) != indexAt(x, k/recordWord*recordWord) {
			return false
		}
	}
	return true
}

// shuffledBytes is the size of a table that one instruction looks up for all bytes of a register.
const shuffledBytes = 16

// IsShortTable reports such a table.
func IsShortTable(table *ir.UOp) bool {
	arg, ok := table.Arg.(ir.TableArg)
	return ok && len(table.Src) == 1 && table.DType.Size() == 1 && len(arg.Data) <= shuffledBytes
}

// decoded is the expression of a weight of one row of blocks, of which k is the only range, sources first.
func (f *Format) decoded() []*ir.UOp {
	a := ir.NewArena()
	buf := a.Make(ir.OpParam, ir.U8, ir.ParamArg{Format: f.Name}, a.Index(RecordRows), a.Index(int64(f.BlockElems)))
	k := a.Range(0, a.Index(int64(f.BlockElems)))
	return ir.Toposort(f.Decode(a, buf, a.Index(0), k))
}

// indexAt is an index of the one range that it depends on.
func indexAt(x *ir.UOp, k int64) int64 {
	if n, ok := x.Int(); ok {
		return n
	}
	if x.Op == ir.OpRange {
		return k
	}
	args := make([]ir.Scalar, len(x.Src))
	for i, s := range x.Src {
		args[i] = ir.IntScalar(indexAt(s, k))
	}
	return ir.EvalScalar(x.Op, ir.Idx, ir.Idx, args).I
}

// InRecords reports a FIELD of a buffer that Records of so many bits may hold.
func InRecords(field *ir.UOp, bits int) bool {
	f, ok := Lookup(field.Arg.(ir.FieldArg).Format)
	shape := make([]int64, len(field.Src[0].Src))
	for i, n := range field.Src[0].Src {
		size, constant := n.Int()
		if !constant {
			return false
		}
		shape[i] = size
	}
	return ok && f.Interleaves(shape, bits)
}

// LayoutOf is the layout of a tensor of this shape on a target that re-lays weights in planes,
// in records of up to so many bits where they suit, or not at all.
func LayoutOf(f *Format, shape []int64, inPlanes bool, recordBits int) Layout {
	switch {
	case inPlanes:
		return Planes
	case f.Interleaves(shape, recordBits):
		return Records
	}
	return Identity
}
