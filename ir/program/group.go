package program

import "tgc/ir"

// Products of warpgroups. GroupMma is a matrix product D = A*B + C that the four warps of a warpgroup compute together, from shared
// memory (wgmma of sm_90a). A is GroupRows x GroupPoints, B is GroupPoints x N, N up to MostGroupColumns.
// Each row of A (of B: column) has a line of GroupLine bytes, 64 elements along the sum, and lines lie one after the other in an
// array aligned to GroupAlign. Of a line eight elements are one piece of 16 bytes, and pieces are permuted, so that the same ones of eight
// rows are in different banks: of the product whose pointer is P bytes from the start of its array, element k of row r is at
//
//	L ^ (L>>7&7)<<4 with L = P + r*128 + (k/8)*16 + k%8*2
//
// P begins a row that is a multiple of eight, at an element that is a multiple of GroupPoints: P%1024 is 0, 32, 64 or 96.
//
// Both pointers are the same in all threads of a warpgroup. Warp w of it has rows 16w to 16w+15 of D, each thread N/2 lanes, those of
// N/8 products of Mma in turn: with g = thread/4%8 and t = thread%4, lane 4j+2h+e is row 16w+g+8h, column 8j+2t+e.
//
// The accumulators are used by one GroupMma and by nothing else, so that it can change the registers that they are in; and
// it may run on until what it gives is used.

// Sizes of such products.
const (
	GroupThreads     = 128 // of a warpgroup
	GroupRows        = 64
	GroupPoints      = 16
	GroupPiece       = 16   // bytes along the sum that lie side by side
	GroupLine        = 128  // bytes of a row
	GroupAlign       = 1024 // of the arrays: eight lines, which the permutation repeats after
	MostGroupColumns = 256
	LeastGroupStep   = 8                                   // columns
	groupLanes       = GroupRows * LeastGroupStep / 4 / 32 // of a thread for as many columns
)

// GroupColumns is N of the product with accumulators of a type; ok is false where there is none.
func GroupColumns(acc Type) (n int, ok bool) {
	n = acc.Lanes / groupLanes * LeastGroupStep
	return n, !acc.Ptr && acc.Elem == ir.F32 && acc.Lanes%groupLanes == 0 && n >= LeastGroupStep && n <= MostGroupColumns
}

func checkGroupMma(v *verifier, in *Instr) {
	v.want("result", in.Result.Type, in.Args[0].Type)
	if _, ok := GroupColumns(in.Args[0].Type); !ok {
		v.fail("no product of a warpgroup has accumulators %s", in.Args[0].Type)
	}
	x, y := in.Args[1].Type, in.Args[2].Type
	for _, p := range in.Args[1:] {
		if t := p.Type; !t.Ptr || t.Space != SharedSpace || t.Elem != ir.F16 && t.Elem != ir.BF16 {
			v.fail("%s has type %s, want a shared pointer to f16 or bf16", p, t)
		}
	}
	if x.Elem != y.Elem {
		v.fail("products of %s and %s", x.Elem, y.Elem)
	}
	for _, p := range in.Args[1:] {
		if array := v.array[p]; array != nil && array.Align < GroupAlign {
			v.fail("%s points into an array with align %d, want at least %d", p, array.Align, GroupAlign)
		}
	}
}

// GroupOffset is where in its array what would be at an offset lies, in bytes, were pieces not permuted; the other way round, too.
func GroupOffset(linear int64) int64 {
	return linear ^ linear/GroupLine%(GroupAlign/GroupLine)*GroupPiece
}

// InGroupArray reports an offset at which a matrix of GroupMma may begin.
func InGroupArray(offset int64) bool {
	const step = GroupPoints * 2
	return offset&(GroupAlign-GroupLine) == 0 && offset%step == 0
}

// GroupMma is the product of a warpgroup: acc + A*B, of matrices in shared memory.
func (b *Builder) GroupMma(acc, x, y *Value) *Value {
	return b.emitValue(acc.Type, Instr{Op: GroupMma, Args: []*Value{acc, x, y}})
}
