package llvm

import (
	"strconv"
	"strings"

	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Gathers: a byte shuffle for tables of up to 16 bytes (the levels of the
// 4-bit codebook formats), a permutation for as many floats, the hardware's gather where one exists, else one
// load per lane. Zen 5: vpshufb 1 cycle for 64 lanes, vgatherdps some 20 for 16.

func (r *renderer) gather(in *program.Instr) value.Value {
	p, offsets, t := r.value(in.Args[0]), r.value(in.Args[1]), in.Result.Type
	elem := memoryType(t.Elem)
	if t.Lanes == 1 {
		return r.load(r.pointerAdd(r.at, elem, p, offsets), t, in.Align)
	}
	if table, ok := r.byteTable(in); ok {
		return r.lookup(table, offsets, valueType(t))
	}
	if table, ok := r.floatTable(in); ok {
		return r.permute(table, in.Args[1])
	}
	if r.hasGather(t) {
		if t.Elem.Size() == 4 && in.Args[1].Type.Elem == ir.I32 && t.Lanes >= r.desc.VectorBytes/4 {
			return r.gather32(p, offsets, valueType(t))
		}
		return r.maskedGather(in, p, offsets)
	}
	if t.Elem.Size() == 1 && t.Elem != ir.Bool {
		if starts, n := r.runsOf(in.Args[1]); n > 1 {
			return r.gatherRuns(p, starts, t, n)
		}
	}
	var v value.Value = undef(valueType(t))
	for lane := range t.Lanes {
		address := r.pointerAdd(r.at, elem, p, r.lane(offsets, lane))
		x := r.load(address, program.Scalar(t.Elem), in.Align)
		v = r.at.NewInsertElement(v, x, intOf(types.I32, int64(lane)))
	}
	return v
}

func (r *renderer) isX86() bool {
	return r.desc != nil && strings.HasPrefix(r.desc.Name, "llvm:x86-64-v")
}

// hasGather reports a vector that a gather instruction loads: AVX2 and up.
func (r *renderer) hasGather(t program.Type) bool {
	return r.isX86() && r.desc.VectorBytes >= 32 && t.Elem.Size() >= 4 && t.Lanes >= 8 && t.Lanes&(t.Lanes-1) == 0
}

func (r *renderer) maskedGather(in *program.Instr, p, offsets value.Value) value.Value {
	t := in.Result.Type
	addresses := r.pointerAdd(r.at, memoryType(t.Elem), p, offsets)
	vt := valueType(t)
	mask := intOf(types.NewVector(uint64(t.Lanes), types.I1), 1)
	name := "llvm.masked.gather." + suffix(vt) + "." + suffix(addresses.Type())
	return r.intrinsic(name, vt, addresses, intOf(types.I32, int64(in.Align)), mask, undef(vt))
}

// gather32 uses the instruction with 32-bit offsets by its own intrinsic: the
// generic one has its offsets widened, and becomes two gathers of half.
func (r *renderer) gather32(p, offsets value.Value, t types.Type) value.Value {
	n := r.desc.VectorBytes / 4
	base := r.bitcast(p, types.I8Ptr)
	elem := t.(*types.VectorType).ElemType
	part := types.NewVector(uint64(n), elem)
	return r.inParts(lanesOf(offsets), n, func(first, n int) value.Value {
		index := r.slice(offsets, first, n)
		if r.desc.VectorBytes == 64 {
			return r.gather512(part, base, index)
		}
		return r.gather256(part, base, index)
	})
}

func (r *renderer) gather512(t types.Type, base, index value.Value) value.Value {
	name := "llvm.x86.avx512.mask.gather.dpi.512"
	if isFloat(t) {
		name = "llvm.x86.avx512.mask.gather.dps.512"
	}
	mask := intOf(types.NewVector(16, types.I1), 1)
	return r.intrinsic(name, t, intOf0(t), base, index, mask, intOf(types.I32, 4))
}

func (r *renderer) gather256(t types.Type, base, index value.Value) value.Value {
	name := "llvm.x86.avx2.gather.d.d.256"
	ones := intOf(types.NewVector(8, types.I32), -1)
	mask := ones
	if isFloat(t) {
		name = "llvm.x86.avx2.gather.d.ps.256"
		mask = r.bitcast(ones, t)
	}
	return r.intrinsic(name, t, intOf0(t), base, index, mask, intOf(types.I8, 4))
}

// intOf0 is zero in every lane.
func intOf0(t types.Type) value.Value { return &literal{t, "zeroinitializer"} }

// byteTable is the constant table of at most 16 one-byte elements that a
// gather reads, if that is what it reads.
func (r *renderer) byteTable(in *program.Instr) (string, bool) {
	if !r.isX86() || in.Result.Type.Elem.Size() != 1 || in.Result.Type.Elem == ir.Bool || in.Result.Type.Lanes < 4 {
		return "", false
	}
	table, ok := r.tableOf(in.Args[0])
	return table, ok && len(table) <= 16
}

// tableOf is the constant table that a pointer is of.
func (r *renderer) tableOf(pointer *program.Value) (table string, ok bool) {
	for i := range r.program.Params {
		if p := &r.program.Params[i]; p.Value == pointer {
			return p.Table, p.Kind == program.ParamTable
		}
	}
	return "", false
}

// lookup is pshufb in each 16 bytes: the table in every one of them, offsets
// as bytes. Offsets lie within the table, so their upper bits are zero.
func (r *renderer) lookup(table string, offsets value.Value, t types.Type) value.Value {
	lanes := lanesOf(offsets)
	bytes := offsets
	if t := types.NewVector(uint64(lanes), types.I8); !offsets.Type().Equal(t) {
		bytes = r.at.NewTrunc(offsets, t)
	}
	return r.bitcast(r.inParts(lanes, r.desc.VectorBytes, func(first, n int) value.Value {
		return r.lookupPart(table, r.slice(bytes, first, n))
	}), t)
}

var byteShuffles = map[int]string{
	16: "llvm.x86.ssse3.pshuf.b.128", 32: "llvm.x86.avx2.pshuf.b", 64: "llvm.x86.avx512.pshuf.b.512",
}

func (r *renderer) lookupPart(table string, index value.Value) value.Value {
	lanes, width := lanesOf(index), 16
	for width < lanes {
		width *= 2
	}
	t := types.NewVector(uint64(width), types.I8)
	entries := vectorLiteral(t, func(i int) string {
		if i%16 >= len(table) {
			return "0"
		}
		return strconv.Itoa(int(int8(table[i%16])))
	})
	v := r.intrinsic(byteShuffles[width], t, entries, r.widenTo(index, width))
	return r.slice(v, 0, lanes)
}

// inParts computes a vector, so many lanes at a time; the last part may be shorter.
func (r *renderer) inParts(lanes, each int, part func(first, n int) value.Value) value.Value {
	var parts []value.Value
	for first := 0; first < lanes; first += each {
		parts = append(parts, part(first, min(each, lanes-first)))
	}
	return r.joinAll(parts)
}

// slice is n lanes of x from first on.
func (r *renderer) slice(x value.Value, first, n int) value.Value {
	if first == 0 && n == lanesOf(x) {
		return x
	}
	mask := lists.Make(n, func(i int) int { return first + i })
	return r.shuffleLanes(x, x, mask)
}
