package program

import (
	"fmt"

	"tgc/internal/lists"
	"tgc/ir"
)

// Builder writes a Program: it allocates value ids, derives result types and
// appends instructions to the current block. Wrong operand types are broken
// invariants of the caller and panic; Verify checks the finished program.
//
// Constants are collected apart and stand at the head of the program, so a
// constant asked for twice is one value that dominates every use. All other
// instructions go to the current block; With emits into an outer block that is
// still open, which is how a lowering hoists what a loop does not change.
type Builder struct {
	program *Program
	block   *Block
	consts  []Instr
	cached  map[constKey]*Value
	known   map[*Value]constKey // scalar integer constants, for folding
	origin  int                 // of new values
}

type constKey struct {
	typ   Type
	bits  int64
	float bool
}

// NewBuilder starts a program with an empty body.
func NewBuilder(name string) *Builder {
	return Resume(&Program{Name: name, Body: &Block{}})
}

// Resume is a Builder that writes on in a program: new values get new ids. Until
// With opens a block, instructions go to the end of the program's body.
func Resume(p *Program) *Builder {
	return &Builder{program: p, block: p.Body, cached: make(map[constKey]*Value), known: make(map[*Value]constKey)}
}

// Finish puts the constants in front and returns the program.
func (b *Builder) Finish() *Program {
	body := b.program.Body
	body.Instrs = append(b.consts, body.Instrs...)
	b.consts = nil
	return b.program
}

// SetGrid sets the work units per axis, outermost first.
func (b *Builder) SetGrid(units ...int64) { b.program.Grid = units }

// SetOptions sets what the plan chooses of passes and printing.
func (b *Builder) SetOptions(o Options) { b.program.Options = o }

// SetCluster sets the work units of a cluster (GPU).
func (b *Builder) SetCluster(units int64) { b.program.Cluster = units }

// SetBlock sets the threads per block axis (GPU).
func (b *Builder) SetBlock(threads ...int64) { b.program.Block = threads }

// NewValue allocates a value that no instruction defines yet.
func (b *Builder) NewValue(t Type) *Value {
	v := &Value{ID: b.program.Values, Type: t, Origin: b.origin}
	b.program.Values++
	return v
}

// MakeFor has new values made for a node of the graph, unless it is 0, until what it
// returns, the node before, is given to MakeAgainFor.
func (b *Builder) MakeFor(origin int) (before int) {
	before = b.origin
	if origin != 0 {
		b.origin = origin
	}
	return before
}

// MakeAgainFor ends what MakeFor began.
func (b *Builder) MakeAgainFor(before int) { b.origin = before }

// Block is the block that instructions are appended to.
func (b *Builder) Block() *Block { return b.block }

// With emits into block, which must be open (the current block or one around
// it), while f runs.
func (b *Builder) With(block *Block, f func()) {
	saved := b.block
	b.block = block
	f()
	b.block = saved
}

// Emit appends a ready instruction to the current block.
func (b *Builder) Emit(i Instr) { b.block.Instrs = append(b.block.Instrs, i) }

func (b *Builder) emitValue(t Type, i Instr) *Value {
	i.Result = b.NewValue(t)
	b.Emit(i)
	return i.Result
}

// Parameters.

// Param adds an argument slot; its Value is made from t.
func (b *Builder) Param(t Type, p Param) *Value {
	p.Value = b.NewValue(t)
	b.program.Params = append(b.program.Params, p)
	return p.Value
}

// Buffer adds a buffer of the kernel's PARAM slot, read and written; Access
// narrows that. align and bytes are those of the buffer's start and whole.
func (b *Builder) Buffer(slot int, dtype ir.DType, name string, align int, bytes int64) *Value {
	return b.Param(Pointer(dtype, GlobalSpace), Param{Kind: ParamBuffer, Slot: slot, Name: name,
		Align: align, Bytes: bytes, Read: true, Write: true})
}

// Access says whether the program reads and writes a buffer parameter.
func (b *Builder) Access(buffer *Value, read, write bool) {
	p := b.param(buffer)
	p.Read, p.Write = read, write
}

// Mark says whether nothing writes a buffer meanwhile, whether its loads are to be
// issued early, and their policy.
func (b *Builder) Mark(buffer *Value, constant, early bool, cache Cache) {
	p := b.param(buffer)
	p.Constant, p.Early, p.Cache = constant, early, cache
}

func (b *Builder) param(v *Value) *Param {
	for i := range b.program.Params {
		if p := &b.program.Params[i]; p.Value == v {
			return p
		}
	}
	panic(fmt.Sprintf("program: %s is no parameter", v))
}

// Var adds a host-bound VAR.
func (b *Builder) Var(name string) *Value {
	return b.Param(Scalar(ir.I64), Param{Kind: ParamVar, Name: name})
}

// Table adds a constant table of dtype elements; data is little-endian bytes.
// Equal tables share a parameter.
func (b *Builder) Table(dtype ir.DType, data string) *Value {
	t := Pointer(dtype, ConstSpace)
	for _, p := range b.program.Params {
		if p.Kind == ParamTable && p.Table == data && p.Value.Type == t {
			return p.Value
		}
	}
	return b.Param(t, Param{Kind: ParamTable, Align: 64, Bytes: int64(len(data)), Table: data, Read: true})
}

// Constants.

func (b *Builder) constant(t Type, i Instr, key constKey) *Value {
	if v, ok := b.cached[key]; ok {
		return v
	}
	i.Op, i.Result = Const, b.NewValue(t)
	b.consts = append(b.consts, i)
	b.cached[key] = i.Result
	return i.Result
}

// Int is an integer or Bool constant in every lane, wrapped to its dtype.
func (b *Builder) Int(t Type, v int64) *Value {
	if t.Elem.IsFloat() {
		return b.Float(t, float64(v))
	}
	v = ir.WrapInt(t.Elem, v)
	key := constKey{typ: t, bits: v}
	c := b.constant(t, Instr{Int: v}, key)
	if t.Lanes == 1 {
		b.known[c] = key
	}
	return c
}

// Float is a float constant in every lane, rounded to its dtype.
func (b *Builder) Float(t Type, v float64) *Value {
	v = ir.RoundFloat(t.Elem, v)
	return b.constant(t, Instr{Float: v}, constKey{typ: t, bits: floatBits(v), float: true})
}

// Index is an I64 scalar constant.
func (b *Builder) Index(v int64) *Value { return b.Int(Scalar(ir.I64), v) }

// Zero is 0 of any type.
func (b *Builder) Zero(t Type) *Value { return b.Int(t, 0) }

// KnownInt returns the value of a scalar integer constant made by this Builder.
func (b *Builder) KnownInt(v *Value) (int64, bool) {
	k, ok := b.known[v]
	return k.bits, ok
}

// IntLanes is a vector constant of integers.
func (b *Builder) IntLanes(dtype ir.DType, lanes ...int64) *Value {
	ints := lists.Map(lanes, func(v int64) int64 { return ir.WrapInt(dtype, v) })
	return b.hoisted(Vector(dtype, len(lanes)), Instr{Op: ConstLanes, Ints: ints})
}

// FloatLanes is a vector constant of floats.
func (b *Builder) FloatLanes(dtype ir.DType, lanes ...float64) *Value {
	floats := lists.Map(lanes, func(v float64) float64 { return ir.RoundFloat(dtype, v) })
	return b.hoisted(Vector(dtype, len(lanes)), Instr{Op: ConstLanes, Floats: floats})
}

func (b *Builder) hoisted(t Type, i Instr) *Value {
	i.Result = b.NewValue(t)
	b.consts = append(b.consts, i)
	return i.Result
}

// Arithmetic.

// Alu is an elementwise op of arguments with equal lanes; the result's type
// follows from the op (CAST and BITCAST have their own methods).
func (b *Builder) Alu(op ir.Op, args ...*Value) *Value {
	if op == ir.OpCast || op == ir.OpBitcast {
		panic("program: Alu of a cast; use Cast or Bitcast")
	}
	return b.emitValue(AluType(op, args), Instr{Op: Alu, Ir: op, Args: args})
}

// AluType is the type of an elementwise op of these arguments, casts apart.
func AluType(op ir.Op, args []*Value) Type {
	t := args[len(args)-1].Type
	if op == ir.OpCmpLt || op == ir.OpCmpEq {
		t.Elem = ir.Bool
	}
	return t
}

// Add is x+y; I64 scalars fold.
func (b *Builder) Add(x, y *Value) *Value {
	xv, xc := b.knownIndex(x)
	yv, yc := b.knownIndex(y)
	switch {
	case xc && yc:
		return b.Index(xv + yv)
	case xc && xv == 0:
		return y
	case yc && yv == 0:
		return x
	}
	return b.Alu(ir.OpAdd, x, y)
}

// Sub is x-y; I64 scalars fold.
func (b *Builder) Sub(x, y *Value) *Value {
	xv, xc := b.knownIndex(x)
	yv, yc := b.knownIndex(y)
	switch {
	case xc && yc:
		return b.Index(xv - yv)
	case yc && yv == 0:
		return x
	}
	return b.Alu(ir.OpSub, x, y)
}

// Mul is x*y; I64 scalars fold.
func (b *Builder) Mul(x, y *Value) *Value {
	xv, xc := b.knownIndex(x)
	yv, yc := b.knownIndex(y)
	switch {
	case xc && yc:
		return b.Index(xv * yv)
	case xc && xv == 0 || yc && yv == 0:
		return b.Index(0)
	case xc && xv == 1:
		return y
	case yc && yv == 1:
		return x
	}
	return b.Alu(ir.OpMul, x, y)
}

// FloorDiv is floor(x/y); I64 scalars fold.
func (b *Builder) FloorDiv(x, y *Value) *Value {
	if yv, ok := b.knownIndex(y); ok {
		if xv, both := b.knownIndex(x); both {
			return b.Index(ir.FloorDiv(xv, yv))
		}
		if yv == 1 {
			return x
		}
	}
	return b.Alu(ir.OpFloorDiv, x, y)
}

// FloorMod is x - y*floor(x/y); I64 scalars fold.
func (b *Builder) FloorMod(x, y *Value) *Value {
	if yv, ok := b.knownIndex(y); ok {
		if xv, both := b.knownIndex(x); both {
			return b.Index(ir.FloorMod(xv, yv))
		}
		if yv == 1 {
			return b.Index(0)
		}
	}
	return b.Alu(ir.OpFloorMod, x, y)
}

func (b *Builder) knownIndex(v *Value) (int64, bool) {
	k, ok := b.known[v]
	return k.bits, ok && k.typ == Scalar(ir.I64)
}

// Fma is x*y+z rounded once.
func (b *Builder) Fma(x, y, z *Value) *Value { return b.Alu(ir.OpFma, x, y, z) }

// Lt is x < y.
func (b *Builder) Lt(x, y *Value) *Value { return b.Alu(ir.OpCmpLt, x, y) }

// Eq is x == y.
func (b *Builder) Eq(x, y *Value) *Value { return b.Alu(ir.OpCmpEq, x, y) }

// Where is c ? x : y lane by lane; both arms are evaluated.
func (b *Builder) Where(c, x, y *Value) *Value { return b.Alu(ir.OpWhere, c, x, y) }

// Cast converts x to dtype, lane by lane (x itself when it has it).
func (b *Builder) Cast(x *Value, dtype ir.DType) *Value {
	if x.Type.Elem == dtype {
		return x
	}
	if v, ok := b.KnownInt(x); ok {
		return b.Int(Scalar(dtype), v)
	}
	return b.emitValue(Vector(dtype, x.Type.Lanes), Instr{Op: Alu, Ir: ir.OpCast, Args: []*Value{x}})
}

// Bitcast keeps the bits of each lane, or of all of them: lanes of a smaller dtype are the parts of
// each of x, lowest first.
func (b *Builder) Bitcast(x *Value, dtype ir.DType) *Value {
	if x.Type.Elem == dtype {
		return x
	}
	lanes := x.Type.Lanes * x.Type.Elem.Size() / dtype.Size()
	return b.emitValue(Vector(dtype, lanes), Instr{Op: Alu, Ir: ir.OpBitcast, Args: []*Value{x}})
}

// PtrCast makes a pointer to another dtype at the same address (the address of
// a field within a buffer of bytes). It is the BITCAST of a pointer.
func (b *Builder) PtrCast(p *Value, dtype ir.DType) *Value {
	if p.Type.Elem == dtype {
		return p
	}
	return b.emitValue(Pointer(dtype, p.Type.Space), Instr{Op: Alu, Ir: ir.OpBitcast, Args: []*Value{p}})
}

// Vectors.

// Broadcast repeats a scalar in every lane (v itself for one lane).
func (b *Builder) Broadcast(v *Value, lanes int) *Value {
	if lanes == v.Type.Lanes {
		return v
	}
	if k, ok := b.known[v]; ok {
		return b.Int(Vector(v.Type.Elem, lanes), k.bits)
	}
	return b.emitValue(Vector(v.Type.Elem, lanes), Instr{Op: Broadcast, Args: []*Value{v}})
}

// Extract is one lane as a scalar.
func (b *Builder) Extract(v *Value, lane int) *Value {
	if v.Type.Lanes == 1 && lane == 0 {
		return v
	}
	return b.emitValue(Scalar(v.Type.Elem), Instr{Op: Extract, Args: []*Value{v}, Lane: lane})
}

// Shuffle picks lanes of x followed by y; -1 leaves a lane undefined.
func (b *Builder) Shuffle(x, y *Value, mask ...int) *Value {
	return b.emitValue(Vector(x.Type.Elem, len(mask)), Instr{Op: Shuffle, Args: []*Value{x, y}, Mask: mask})
}

// Slice is count lanes of v from first on.
func (b *Builder) Slice(v *Value, first, count int) *Value {
	if first == 0 && count == v.Type.Lanes {
		return v
	}
	mask := lists.Make(count, func(i int) int { return first + i })
	return b.Shuffle(v, v, mask...)
}

// Concat puts the lanes of vectors one after the other.
func (b *Builder) Concat(parts ...*Value) *Value {
	if len(parts) == 1 {
		return parts[0]
	}
	lanes := 0
	for _, p := range parts {
		lanes += p.Type.Lanes
	}
	return b.emitValue(Vector(parts[0].Type.Elem, lanes), Instr{Op: Concat, Args: parts})
}

// FoldLanes folds all lanes in FoldOrder (v itself for one lane).
func (b *Builder) FoldLanes(op ir.Op, v *Value) *Value {
	if v.Type.Lanes == 1 {
		return v
	}
	return b.emitValue(Scalar(v.Type.Elem), Instr{Op: FoldLanes, Ir: op, Args: []*Value{v}})
}

// Dot4 is acc + the sum of 4 products per lane: acc I32 x n, x and y U8 or I8 x 4n.
func (b *Builder) Dot4(acc, x, y *Value) *Value {
	return b.emitValue(acc.Type, Instr{Op: Dot4, Args: []*Value{acc, x, y}})
}

// Memory. The element type of a pointer is that of what is loaded or stored;
// align is in bytes, proven.

// PtrAdd moves a pointer by I64 elements.
func (b *Builder) PtrAdd(p, elements *Value) *Value {
	if v, ok := b.knownIndex(elements); ok && v == 0 {
		return p
	}
	return b.emitValue(p.Type, Instr{Op: PtrAdd, Args: []*Value{p, elements}})
}

// Load reads contiguous lanes.
func (b *Builder) Load(p *Value, lanes, align int) *Value {
	return b.emitValue(Vector(p.Type.Elem, lanes), Instr{Op: Load, Args: []*Value{p}, Align: align})
}

// Store writes contiguous lanes.
func (b *Builder) Store(p, v *Value, align int) {
	b.Emit(Instr{Op: Store, Args: []*Value{p, v}, Align: align})
}

// StoreCached is Store with a cache policy.
func (b *Builder) StoreCached(p, v *Value, align int, cache Cache) {
	b.Emit(Instr{Op: Store, Args: []*Value{p, v}, Align: align, Cache: cache})
}

// Gather reads one element per lane of offsets (I32 or I64 elements).
func (b *Builder) Gather(p, offsets *Value, align int) *Value {
	return b.emitValue(Vector(p.Type.Elem, offsets.Type.Lanes), Instr{Op: Gather, Args: []*Value{p, offsets}, Align: align})
}

// Scatter writes one element per lane; of equal offsets the last lane wins.
func (b *Builder) Scatter(p, offsets, v *Value, align int) {
	b.Emit(Instr{Op: Scatter, Args: []*Value{p, offsets, v}, Align: align})
}

// Guarded loads if guard holds, else gives other and touches no memory; guard is one
// for all lanes or has one for each.
func (b *Builder) Guarded(guard, p, other *Value, align int) *Value {
	return b.emitValue(other.Type, Instr{Op: Guarded, Args: []*Value{guard, p, other}, Align: align})
}

// Levels of a prefetch: one that leaves the others of the caches as they are.
const (
	FirstLevelAlone = 1
	SecondLevel     = 2
)

// Prefetch hints that the line at p is read soon; any address is allowed. level is the first cache that
// shall hold it, 0: all of them, FirstLevelAlone: no other.
func (b *Builder) Prefetch(p *Value, level int64) {
	b.Emit(Instr{Op: Prefetch, Args: []*Value{p}, Int: level})
}

// Alloca reserves count elements; the contents are undefined.
func (b *Builder) Alloca(dtype ir.DType, space Space, count int64, align int) *Value {
	return b.emitValue(Pointer(dtype, space), Instr{Op: Alloca, Count: count, Align: align})
}

// Control flow.

// Loop is an open For: instructions go to its Body until EndFor.
type Loop struct {
	Index *Value
	Body  *Block

	parent       *Block
	lo, hi, step *Value
	inits        []*Value
	carried      []*Value
}

// Carry adds a carried value to an open loop and returns what the body reads.
func (b *Builder) Carry(l *Loop, init *Value) *Value {
	v := b.NewValue(init.Type)
	l.inits = append(l.inits, init)
	l.carried = append(l.carried, v)
	l.Body.Args = append(l.Body.Args, v)
	return v
}

// BeginFor opens the loop lo, lo+step, .. below hi (I64) and enters its body.
// The For stands in the current block where EndFor closes it, so instructions
// emitted With the outer block meanwhile come before it.
func (b *Builder) BeginFor(lo, hi, step *Value) *Loop {
	index := b.NewValue(Scalar(ir.I64))
	l := &Loop{Index: index, Body: &Block{Args: []*Value{index}}, parent: b.block, lo: lo, hi: hi, step: step}
	b.block = l.Body
	return l
}

// EndFor closes the loop with the next value of each carried value and returns
// the values after the last iteration (the initial ones if there is none).
func (b *Builder) EndFor(l *Loop, next ...*Value) []*Value {
	if b.block != l.Body {
		panic("program: EndFor: another block is open")
	}
	if len(next) != len(l.carried) {
		panic(fmt.Sprintf("program: EndFor: %d values, want %d", len(next), len(l.carried)))
	}
	b.Emit(Instr{Op: Yield, Args: next})
	b.block = l.parent
	results := make([]*Value, len(next))
	for i, v := range l.inits {
		results[i] = b.NewValue(v.Type)
	}
	args := append([]*Value{l.lo, l.hi, l.step}, l.inits...)
	b.Emit(Instr{Op: For, Args: args, Body: l.Body, Results: results})
	return results
}

// For is BeginFor, body, EndFor.
func (b *Builder) For(lo, hi, step *Value, inits []*Value, body func(index *Value, carried []*Value) []*Value) []*Value {
	l := b.BeginFor(lo, hi, step)
	for _, v := range inits {
		b.Carry(l, v)
	}
	return b.EndFor(l, body(l.Index, l.carried)...)
}

// If runs one of two blocks; both give values of the same types. Without
// results orElse may be nil.
func (b *Builder) If(cond *Value, then, orElse func() []*Value) []*Value {
	instr := Instr{Op: If, Args: []*Value{cond}, Body: &Block{}, Else: &Block{}}
	var results []*Value
	b.With(instr.Body, func() {
		results = then()
		b.Emit(Instr{Op: Yield, Args: results})
	})
	b.With(instr.Else, func() {
		var other []*Value
		if orElse != nil {
			other = orElse()
		}
		b.Emit(Instr{Op: Yield, Args: other})
	})
	for _, v := range results {
		instr.Results = append(instr.Results, b.NewValue(v.Type))
	}
	b.Emit(instr)
	return instr.Results
}

// BeginGrid opens the grid loop and enters its body; the argument is the flat
// work-unit index. What stood before is the prologue.
func (b *Builder) BeginGrid() (unit *Value, body *Block) {
	unit = b.NewValue(Scalar(ir.I64))
	body = &Block{Args: []*Value{unit}}
	b.block = body
	return unit, body
}

// EndGrid closes the grid loop. Instructions emitted With the program's body
// since BeginGrid belong to the prologue.
func (b *Builder) EndGrid(body *Block) {
	if b.block != body {
		panic("program: EndGrid: another block is open")
	}
	b.block = b.program.Body
	b.Emit(Instr{Op: GridLoop, Body: body})
}

// GridLoop is BeginGrid, body, EndGrid.
func (b *Builder) GridLoop(body func(unit *Value)) {
	unit, block := b.BeginGrid()
	body(unit)
	b.EndGrid(block)
}
