package program

import (
	"slices"
	"tgc/ir"
)

// Instructions that only a GPU has, their tables and checks.

// MmaShape is a matrix product D = A*B + C that one warp computes: A is M x K
// row by row, B is K x N column by column. Each thread holds M*K/32 lanes of A,
// K*N/32 of B and M*N/32 of C, in the order of PTX's mma.sync: with g =
// thread/4 and t = thread%4, C is rows g, g+8 of columns 2t, 2t+1; A comes in
// 32-bit words of rows g, g+8 in turn, k in 4t/size.. first of the lower half
// of K, then of the upper; B the same of column g. An f64 is a word of its own: K has four parts
// instead of halves.
type MmaShape struct {
	A, B, Acc ir.DType
	M, N, K   int
	SM        int // the first architecture that has it
	Name      string
}

// MmaShapes are the products that programs can hold; the fragments' types
// choose one.
var MmaShapes = []MmaShape{
	{ir.F16, ir.F16, ir.F32, 16, 8, 8, 75, "m16n8k8.row.col.f32.f16.f16.f32"},
	{ir.F16, ir.F16, ir.F32, 16, 8, 16, 80, "m16n8k16.row.col.f32.f16.f16.f32"},
	{ir.BF16, ir.BF16, ir.F32, 16, 8, 8, 80, "m16n8k8.row.col.f32.bf16.bf16.f32"},
	{ir.BF16, ir.BF16, ir.F32, 16, 8, 16, 80, "m16n8k16.row.col.f32.bf16.bf16.f32"},
	{ir.I8, ir.I8, ir.I32, 8, 8, 16, 75, "m8n8k16.row.col.s32.s8.s8.s32"},
	{ir.U8, ir.I8, ir.I32, 8, 8, 16, 75, "m8n8k16.row.col.s32.u8.s8.s32"},
	{ir.I8, ir.I8, ir.I32, 16, 8, 16, 80, "m16n8k16.row.col.s32.s8.s8.s32"},
	{ir.U8, ir.I8, ir.I32, 16, 8, 16, 80, "m16n8k16.row.col.s32.u8.s8.s32"},
	{ir.I8, ir.U8, ir.I32, 16, 8, 16, 80, "m16n8k16.row.col.s32.s8.u8.s32"},
	{ir.U8, ir.U8, ir.I32, 16, 8, 16, 80, "m16n8k16.row.col.s32.u8.u8.s32"},
	{ir.I8, ir.I8, ir.I32, 16, 8, 32, 80, "m16n8k32.row.col.s32.s8.s8.s32"},
	{ir.U8, ir.I8, ir.I32, 16, 8, 32, 80, "m16n8k32.row.col.s32.u8.s8.s32"},
	{ir.I8, ir.U8, ir.I32, 16, 8, 32, 80, "m16n8k32.row.col.s32.s8.u8.s32"},
	{ir.U8, ir.U8, ir.I32, 16, 8, 32, 80, "m16n8k32.row.col.s32.u8.u8.s32"},
	{ir.F64, ir.F64, ir.F64, 16, 8, 16, 90, "m16n8k16.row.col.f64.f64.f64.f64"},
}

// Types are those of a thread's fragments of C, A and B.
func (s *MmaShape) Types() (acc, a, b Type) {
	return Vector(s.Acc, s.M*s.N/32), Vector(s.A, s.M*s.K/32), Vector(s.B, s.K*s.N/32)
}

// Word is how many elements of a fragment's type are a word of it.
func (s *MmaShape) Word() int { return max(4/s.A.Size(), 1) }

// MmaOf is the shape that fragments of these types make; nil when there is none.
func MmaOf(acc, a, b Type) *MmaShape {
	for i := range MmaShapes {
		s := &MmaShapes[i]
		if c, x, y := s.Types(); c == acc && x == a && y == b {
			return s
		}
	}
	return nil
}

func checkMma(v *verifier, in *Instr) {
	v.want("result", in.Result.Type, in.Args[0].Type)
	acc, a, b := in.Args[0].Type, in.Args[1].Type, in.Args[2].Type
	if MmaOf(acc, a, b) == nil {
		v.fail("no matrix product of fragments %s, %s, %s", acc, a, b)
	}
}

// MostCluster is how many blocks a cluster has at most on every GPU that has clusters.
const MostCluster = 8

func (v *verifier) cluster() {
	p := v.program
	if n := p.Cluster; n < 0 || n > MostCluster || n&(n-1) != 0 {
		v.fail("a cluster of %d blocks, want a power of two up to %d", n, MostCluster)
	}
	if p.Cluster > 1 && p.Units()%p.Cluster != 0 {
		v.fail("%d work units in clusters of %d", p.Units(), p.Cluster)
	}
}

func checkPeerPtr(v *verifier, in *Instr) {
	p := in.Args[0]
	if !p.Type.Ptr || p.Type.Space != SharedSpace {
		v.fail("%s has type %s, want a shared pointer", p, p.Type)
	}
	v.want("block", in.Args[1].Type, Scalar(ir.I64))
	v.want("result", in.Result.Type, Pointer(p.Type.Elem, PeerSpace))
}

// atomics are the types on which an atomic op exists on every GPU.
var atomics = map[ir.Op][]ir.DType{
	ir.OpAdd: {ir.I32, ir.U32, ir.I64, ir.U64, ir.F32, ir.F64},
	ir.OpMin: {ir.I32, ir.U32, ir.I64, ir.U64},
	ir.OpMax: {ir.I32, ir.U32, ir.I64, ir.U64},
	ir.OpAnd: {ir.I32, ir.U32, ir.I64, ir.U64},
	ir.OpOr:  {ir.I32, ir.U32, ir.I64, ir.U64},
	ir.OpXor: {ir.I32, ir.U32, ir.I64, ir.U64},
}

// HasAtomic reports an operation on a type that memory combines atomically with one result in any
// order: of integers.
func HasAtomic(op ir.Op, d ir.DType) bool { return !d.IsFloat() && slices.Contains(atomics[op], d) }

func checkAtomic(v *verifier, in *Instr) {
	t := in.Result.Type
	v.want("value", in.Args[1].Type, t)
	if !slices.ContainsFunc(atomics[in.Ir], func(d ir.DType) bool { return t == Scalar(d) }) {
		v.fail("no atomic %s of %s", in.Ir, t)
	}
	p := in.Args[0]
	if p.Type.Ptr && p.Type.Space != GlobalSpace && p.Type.Space != SharedSpace {
		v.fail("atomic in %s, want global or shared memory", p.Type)
	}
	if in.Align < t.Elem.Size() {
		v.fail("align %d, want at least %d", in.Align, t.Elem.Size())
	}
	v.access(p, t, false)
	v.access(p, t, true)
}

// Builder methods of GPU instructions.

// ThreadIndex is this thread's index on a block axis.
func (b *Builder) ThreadIndex(axis int) *Value {
	return b.emitValue(Scalar(ir.I32), Instr{Op: ThreadIndex, Lane: axis})
}

// Barrier waits for all threads of the block.
func (b *Builder) Barrier() { b.Emit(Instr{Op: Barrier}) }

// PeerPtr is the place in the shared memory of a block of the cluster that p is in this block's.
func (b *Builder) PeerPtr(p, block *Value) *Value {
	return b.emitValue(Pointer(p.Type.Elem, PeerSpace), Instr{Op: PeerPtr, Args: []*Value{p, block}})
}

// ShuffleLane is the value that the lane with index (own xor mask) has.
func (b *Builder) ShuffleLane(v, mask *Value) *Value {
	return b.emitValue(v.Type, Instr{Op: ShuffleLane, Args: []*Value{v, mask}})
}

// Atomic combines value into the memory at p and returns what was there.
func (b *Builder) Atomic(op ir.Op, p, value *Value) *Value {
	return b.emitValue(value.Type, Instr{Op: Atomic, Ir: op, Args: []*Value{p, value}, Align: value.Type.Elem.Size()})
}

// Mma is the warp's matrix product of fragments (MmaShapes).
func (b *Builder) Mma(acc, x, y *Value) *Value {
	return b.emitValue(acc.Type, Instr{Op: Mma, Args: []*Value{acc, x, y}})
}

// LoadCached is Load with a cache policy.
func (b *Builder) LoadCached(p *Value, lanes, align int, cache Cache) *Value {
	return b.emitValue(Vector(p.Type.Elem, lanes), Instr{Op: Load, Args: []*Value{p}, Align: align, Cache: cache})
}
