// Package program is pipeline form 4: one kernel as a linear, structured
// program. Unlike the graphs of package ir it is not interned, because order
// and repetition mean something here: load twice, recompute, barrier between.
//
// Package kernel lowers a planned kernel to a Program; package runtime/interp
// evaluates it; the renderers under render print it. Values are SSA and may be
// vectors; control flow is nested blocks; effects (stores, barriers) happen in
// the order in which they stand.
package program

import (
	"tgc/internal/lists"
	"tgc/ir"
)

// Type is the type of a value: a scalar or vector of a dtype, or a pointer.
// Programs hold no Idx: index arithmetic is I64 (or I32 where bounds allow).
type Type struct {
	Elem  ir.DType
	Lanes int   // 1 is a scalar
	Ptr   bool  // a pointer to Elem
	Space Space // of a pointer
}

// Space is the address space of a pointer.
type Space uint8

// The address spaces.
const (
	GlobalSpace Space = iota // buffers
	LocalSpace               // private to a work unit or worker: registers, stack
	SharedSpace              // shared by a block of threads
	ConstSpace               // constant tables
	PeerSpace                // the shared memory of a block of the same cluster
)

// Scalar is the scalar type of a dtype.
func Scalar(d ir.DType) Type { return Type{Elem: d, Lanes: 1} }

// Vector is a vector type; one lane is the scalar.
func Vector(d ir.DType, lanes int) Type { return Type{Elem: d, Lanes: lanes} }

// Pointer is a pointer type.
func Pointer(d ir.DType, space Space) Type { return Type{Elem: d, Lanes: 1, Ptr: true, Space: space} }

// Value is an SSA value: the result of an instruction, a block argument, a
// parameter. IDs are dense in a Program and name the value in the text form.
type Value struct {
	ID     int
	Type   Type
	Origin int // the node of the graph for which it was made, see ir.Arena.Trace; 0: not known
}

// Op is the operation of an instruction.
type Op uint8

// The instructions. Scalar arithmetic is Alu with an ir.Op, lane by lane.
const (
	Alu Op = iota // Ir(args...): elementwise on equal lane counts; CAST and BITCAST to Type

	Const      // Int or Float in every lane
	ConstLanes // Ints or Floats lane by lane (a vector constant)
	Broadcast  // args: scalar -> every lane
	Extract    // args: vector; Lane -> scalar
	Shuffle    // args: a, b (same type); Mask over lanes of a then b; -1 is undefined
	Concat     // args: vectors of one elem -> lanes one after the other
	FoldLanes  // args: vector; Ir in {add, mul, max, min} -> scalar, in a fixed tree order (see FoldOrder)

	PtrAdd   // args: pointer, I64 elements -> pointer
	Load     // args: pointer -> Type, contiguous lanes; Align bytes proven
	Store    // args: pointer, value; contiguous lanes; Align bytes proven
	Gather   // args: pointer, I64 or I32 vector of element offsets -> Type; Align of one element
	Scatter  // args: pointer, offsets, value
	Guarded  // args: Bool, pointer, other -> Load if the guard holds, else other; never touches memory otherwise. A CPU takes a guard for each lane
	Prefetch // args: pointer; a hint, no effect. Int: which caches shall hold the line (SecondLevel, FirstLevelAlone), 0: all

	Alloca // Count elements of Type.Elem in Type.Space, aligned to Align; contents undefined

	For      // args: lo, hi, step (I64), then initial carried values; Body.Args: index, carried...; results: carried
	If       // args: Bool scalar; Body then, Else; both yield the results
	Yield    // args: what the enclosing For or If carries out
	GridLoop // Body.Args: I64 flat work-unit index. A CPU runs the caller's slab [lo, hi) of units; a GPU runs its own block

	ThreadIndex // GPU: I32 index of this thread in its block, axis Lane
	Barrier     // GPU: all threads of the block. Int: the first of them alone, whole warps; 0: all
	ShuffleLane // GPU: args: value, I32 lane xor mask
	SyncWarp    // GPU: all threads of the warp; orders their shared memory accesses
	WaitGrid    // GPU: wait for the previous kernel (programmatic dependent launch)
	LaunchNext  // GPU: allow the next kernel to start

	PeerPtr       // GPU: args: shared pointer, I64 block of the cluster -> pointer to the same place in that block's shared memory
	ClusterArrive // GPU: all threads of the cluster; what a thread did before it is done for those that have waited
	ClusterWait   // GPU: until all threads of the cluster have arrived; arrivals and waits take turns

	Fence  // GPU: this thread's accesses before it happen before those after it, for the whole device
	Atomic // GPU: args: pointer, value; Ir in {add, min, max, and, or, xor} -> the old value; relaxed
	Mma    // GPU: args: acc, a, b; fragments of one matrix product by a warp (MmaShapes) -> acc's type

	GroupMma // GPU: args: acc, pointers to a and b in shared memory; a matrix product by a warpgroup (see group.go) -> acc's type

	CopyAsync  // GPU: args: shared pointer, global pointer; Int bytes (CopySizes), under way until this thread's next WaitCopies; both aligned to Int
	WaitCopies // GPU: until all copies that this thread has started are done

	TileDot // CPU: args: pointer to sums, then pairs of pointers to matrices (see TileShape); Tile: writes the sum of their products

	Dot4 // args: acc i32, a, b (4 lanes packed per i32 lane), each u8 or i8: acc + sum of 4 products per lane; Lanes of acc
)

// warpSize is the number of threads of a warp on every NVIDIA GPU.
const warpSize = 32

// Cache is the policy of a global memory access. A CPU heeds it only in stores of
// whole vectors.
type Cache uint8

// The policies.
const (
	CacheDefault Cache = iota
	CacheConst         // load: nothing writes these bytes while this kernel or the one before it runs
	CacheStream        // load: as CacheConst, and each byte is read once; store: not read again soon
	CacheL2            // past the first level, where a block may hold old bytes
	CacheWide          // load: as CacheStream, and the second level fetches 256 bytes around it
)

// Instr is one instruction. Which fields mean something follows from Op.
type Instr struct {
	Op      Op
	Ir      ir.Op // Alu, FoldLanes, Atomic
	Result  *Value
	Results []*Value // For, If
	Args    []*Value
	Int     int64
	Float   float64
	Ints    []int64
	Floats  []float64
	Lane    int
	Mask    []int
	Align   int   // bytes, of Load, Store, Gather, Scatter, Guarded, Alloca, Atomic
	Cache   Cache // of Load, Store, Gather, Guarded
	Count   int64
	Tile    TileShape // of TileDot
	Body    *Block
	Else    *Block
}

// TileShape is what a TileDot multiplies: it writes the sum of products of pairs of small matrices that
// lie in memory,
//
//	sums[m][n] = sum over pairs, over k: a[m][k] * b[k][n]
//
// with m below Rows and n below TileColumns. The elements are bytes (either side may be
// signed or not), whose sums are I32, or BF16, whose sums are F32. A row of a lies side by
// side, StrideA bytes from the next; of b the elements of one word along k, four bytes or two
// BF16, of all columns: words, StrideB bytes apart, of which there are Words. The sums have
// no gaps: 64 bytes for each row. So they are what the tile instructions of x86 take (AMX).
//
// Of BF16, products are exact. For each pair the elements of a word have a sum each, from
// zero, over the words in order; these are added, and what they give to the sum of the pairs
// before. All additions are rounded to the nearest F32, and numbers below the least normal
// one are zero wherever they are read or made.
type TileShape struct {
	Rows, Words      int
	StrideA, StrideB int64
}

// Block is a straight sequence of instructions, with arguments when it is the
// body of a loop.
type Block struct {
	Args   []*Value
	Instrs []Instr
}

// Yielded are the values that a block ends with.
func (b *Block) Yielded() []*Value { return b.Instrs[len(b.Instrs)-1].Args }

// ParamKind tells what an argument slot of a program holds.
type ParamKind uint8

// The kinds of parameter.
const (
	ParamBuffer ParamKind = iota // a pointer
	ParamVar                     // an I64: a host-bound VAR's value
	ParamTable                   // a pointer to constant bytes, data in Table
)

// Param is an argument slot.
type Param struct {
	Kind  ParamKind
	Name  string // of a VAR; a buffer's name is for people only
	Slot  int    // of a buffer: the kernel's PARAM slot
	Value *Value
	Align int   // bytes to which a buffer's start is aligned, at least
	Bytes int64 // size of a buffer
	Lo    int64 // bounds of a VAR, both included; 0 and 0 when they are not known
	Hi    int64
	Table string
	Write bool // the program writes the buffer
	Read  bool
	// Marks of buffers that GPU programs have.
	Constant bool  // no kernel writes the buffer while the program waits to run or runs: packed weights
	Early    bool  // a block's loads of it are to be issued early, as the plan asks
	Cache    Cache // of loads, as the plan asks; CacheDefault: as the passes think
}

// Program is one kernel in linear form.
type Program struct {
	Name    string
	Params  []Param
	Options Options // of its plan
	Grid    []int64 // work units per axis, outermost first; flat index is row-major
	Block   []int64 // GPU: threads per block axis, outermost first; the last axis is x, whose neighbours share a warp
	Cluster int64   // GPU: work units, one after the other, whose blocks run at once and reach each other's shared memory; 0: each alone
	Body    *Block  // prologue (once per worker or block), then one GridLoop
	Values  int     // number of value ids used
}

// Units is the number of flat work units.
func (p *Program) Units() int64 {
	return lists.Product(p.Grid)
}

// Threads is the number of threads of a block.
func (p *Program) Threads() int64 {
	return lists.Product(p.Block)
}

// Bytes is the size of a scalar or vector.
func (t Type) Bytes() int { return t.Lanes * t.Elem.Size() }

// Registers is how many 32-bit registers a scalar or vector takes.
func (t Type) Registers() int { return (t.Bytes() + 3) / 4 }

// FoldOrder documents FoldLanes: halves are combined, lane i with lane i+n/2,
// until one lane is left (n a power of two); any other n folds its lanes one
// after the other. Interpreter and renderers must keep this order, so that
// both give the same bits.
const FoldOrder = "halves"
