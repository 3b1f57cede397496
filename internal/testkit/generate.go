package testkit

import (
	"fmt"
	"math"
	"math/rand/v2"

	"pgregory.net/rapid"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// Limits steers the generator.
type Limits struct {
	MinOps, MaxOps int
	// Elements is the largest tensor that is made, in elements.
	Elements int
	// Large draws extents past the vector and tile sizes of plans: a case then
	// takes some ten milliseconds.
	Large bool
	// Symbolic adds inputs whose length is a VAR.
	Symbolic bool
	// Empty allows extents of 0.
	Empty bool
	// Packed allows packed weights; rows have at least 32 elements then.
	Packed bool
	// Typed draws from typedOps instead of the other tables: every dtype, extents
	// of 0 to 40.
	Typed bool
	// Only keeps the makers with these names; empty keeps all.
	Only []string
}

// DefaultLimits are graphs that compile and run in some milliseconds.
func DefaultLimits() Limits {
	return Limits{MinOps: 2, MaxOps: 14, Elements: 600, Packed: true}
}

// Cases is a generator of random graphs with contents.
func Cases(limits Limits) *rapid.Generator[*Case] {
	return rapid.Custom(func(t *rapid.T) *Case { return generate(t, limits) })
}

// builder is a graph in the making, with its values on the case's contents.
type builder struct {
	t      *rapid.T
	limits Limits
	c      *Case
	g      *tensor.Graph
	eager  *Eager
	rng    *rand.Rand
	pool   []*tensor.Tensor
	size   *ir.UOp // the VAR of symbolic graphs
}

// maker is one row of the generator's tables: it extends the graph by an op or
// a motif, or returns nil when it finds nothing to work on.
type maker struct {
	name   string
	weight int
	make   func(b *builder) *tensor.Tensor
}

// SizeVar is the name of the symbolic size and SizeHigh its largest value, in
// large cases LargeSizeHigh.
const (
	SizeVar       = "n"
	SizeHigh      = 5
	LargeSizeHigh = 75
)

func (b *builder) sizeHigh() int {
	if b.limits.Large {
		return LargeSizeHigh
	}
	return SizeHigh
}

// newBuilder starts an empty graph.
func newBuilder(t *rapid.T, limits Limits) *builder {
	seed := rapid.Uint64().Draw(t, "seed")
	g := tensor.NewGraph()
	c := &Case{Graph: g, Buffers: make(map[int64]*interp.KernelBuffer), Vars: make(map[string]int64)}
	b := &builder{t: t, limits: limits, c: c, g: g, rng: rand.New(rand.NewPCG(seed, 1))}
	b.eager = NewEager(make(map[int64]*Numbers), c.Vars)
	return b
}

func generate(t *rapid.T, limits Limits) *Case {
	b := newBuilder(t, limits)
	g, c := b.g, b.c
	if limits.Symbolic {
		low := 1
		if limits.Empty {
			low = 0
		}
		b.size = g.Var(SizeVar, int64(low), int64(b.sizeHigh()))
		c.Vars[SizeVar] = int64(b.intRange("size", 1, b.sizeHigh()))
		b.keep(symbolicInput(b))
	}
	first := ir.F32
	if limits.Typed {
		first = b.dtype()
	}
	b.keep(b.input(first, b.shape("shape")...))
	rows := selectMakers(limits)
	for range b.intRange("ops", limits.MinOps, limits.MaxOps) {
		m := rows[b.intRange("op", 0, len(rows)-1)]
		if out := m.make(b); out != nil {
			b.keep(out)
		}
	}
	b.outputs()
	return c
}

// selectMakers repeats every row by its weight.
func selectMakers(limits Limits) []maker {
	var rows []maker
	tables := [][]maker{pointOps, moveOps, foldOps, motifOps}
	if limits.Typed {
		tables = [][]maker{typedOps}
	}
	for _, table := range tables {
		for _, m := range table {
			if !wanted(limits, m.name) {
				continue
			}
			for range m.weight {
				rows = append(rows, m)
			}
		}
	}
	return rows
}

func wanted(limits Limits, name string) bool {
	if name == "packed" && !limits.Packed {
		return false
	}
	for _, only := range limits.Only {
		if only == name {
			return true
		}
	}
	return len(limits.Only) == 0
}

// outputs stores the last value and some others.
func (b *builder) outputs() {
	last := len(b.pool) - 1
	chosen := map[int]bool{last: true}
	more := 2
	if b.limits.Typed {
		more = 4
	}
	for range b.intRange("more outputs", 0, more) {
		chosen[b.intRange("output", 0, last)] = true
	}
	for i := range b.pool {
		if chosen[i] {
			b.declare(b.g.Output(fmt.Sprintf("out%d", i), b.pool[i]))
		}
	}
}

// keep adds a value to the pool if the eager model finds it tame.
func (b *builder) keep(t *tensor.Tensor) bool {
	if err := b.g.Err(); err != nil {
		b.t.Fatalf("the generator made a bad graph: %v", err)
	}
	if !b.tame(t) {
		return false
	}
	b.pool = append(b.pool, t)
	return true
}

func (b *builder) tame(t *tensor.Tensor) bool {
	count := int64(1)
	for _, dim := range t.Shape() {
		count *= upper(dim)
	}
	if count > int64(b.limits.Elements) {
		return false
	}
	v := b.eager.Eval(t.Node())
	loose := 2e-3 // relative; narrow dtypes are allowed a few roundings
	if v.DType.IsFloat() {
		loose = max(loose, 8*unit(v.DType))
	}
	for _, n := range v.Data {
		bad := n.Error != 0
		if v.DType.IsFloat() {
			bad = math.IsNaN(n.F) || math.Abs(n.F) > 1e4 || n.F != 0 && math.Abs(n.F) < 1e-25 || n.Error > loose*max(1, math.Abs(n.F))
		}
		if bad {
			return false
		}
	}
	return true
}

// declare fills a buffer that the graph declared.
func (b *builder) declare(info tensor.BufferInfo) {
	b.declareInts(info, -4, 9)
}

func (b *builder) declareInts(info tensor.BufferInfo, lo, hi int64) {
	if err := b.c.Fill(info, b.rng, lo, hi); err != nil {
		b.t.Fatalf("fill %q: %v", info.Name, err)
	}
	if b.limits.Typed && !info.Output && lo < hi && b.chance("special values") {
		special(b.c.Buffers[info.ID], b.rng)
	}
	n, err := decodeBuffer(b.c.Buffers[info.ID], rounded)
	if err != nil {
		b.t.Fatalf("decode %q: %v", info.Name, err)
	}
	b.eager.Buffers[info.ID] = n
}

func (b *builder) lastBuffer() tensor.BufferInfo {
	list := b.g.Buffers()
	return list[len(list)-1]
}

func (b *builder) name(kind string) string { return fmt.Sprintf("%s%d", kind, len(b.g.Buffers())) }

// input declares and fills a buffer; integers lie in -4..9.
func (b *builder) input(dtype ir.DType, shape ...int) *tensor.Tensor {
	return b.inputInts(dtype, -4, 9, shape...)
}

// inputInts is an input of whole numbers in lo..hi that its dtype holds.
func (b *builder) inputInts(dtype ir.DType, lo, hi int64, shape ...int) *tensor.Tensor {
	if !dtype.IsFloat() {
		least, most := dtype.IntRange()
		lo, hi = max(lo, least), min(hi, most)
	}
	t := b.g.Input(b.name("in"), dtype, shape...)
	b.declareInts(b.lastBuffer(), lo, hi)
	return t
}

// weight is an input of a random storage dtype, read as f32.
func (b *builder) weight(shape ...int) *tensor.Tensor {
	dtype := rapid.SampledFrom([]ir.DType{ir.F32, ir.F32, ir.F16, ir.BF16}).Draw(b.t, "weight dtype")
	return b.input(dtype, shape...).Cast(ir.F32)
}

// packedWeight is a decoded weight; width is a multiple of the format's block.
func (b *builder) packedWeight(format string, shape ...int) *tensor.Tensor {
	t := b.g.Packed(b.name("w"), format, shape...)
	b.declare(b.lastBuffer())
	return t
}

// intRange draws evenly: rapid's own ranges prefer small numbers, which would
// make most graphs out of the first rows of the tables.
func (b *builder) intRange(label string, lo, hi int) int {
	return rapid.SampledFrom(numbers[lo:hi+1]).Draw(b.t, label)
}

// numbers holds 0, 1, 2 ..: what intRange draws from.
var numbers = func() []int {
	return lists.Upto(4096)
}()

func (b *builder) chance(label string) bool { return rapid.Bool().Draw(b.t, label) }

// extents are small: 1 is a special case everywhere, powers of two split. Large
// ones have remainders after vectors and tiles.
var (
	extents      = []int{1, 2, 3, 4, 4, 5, 6, 8, 8, 12, 16}
	largeExtents = []int{1, 3, 4, 8, 16, 17, 24, 32, 33, 48, 64, 100, 128}
)

// LargeLimits are graphs of few ops on tensors that plans tile and vectorise.
func LargeLimits() Limits {
	return Limits{MinOps: 2, MaxOps: 6, Elements: 20_000, Packed: true, Large: true}
}

// upTo draws a size: small by default, up to large in large cases.
func (b *builder) upTo(label string, small, large int) int {
	if b.limits.Large {
		return b.intRange(label, 1, large)
	}
	return b.intRange(label, 1, small)
}

func (b *builder) extent(label string) int {
	if b.limits.Empty && b.intRange(label+" empty", 0, 15) == 15 {
		return 0
	}
	list := extents
	if b.limits.Large {
		list = largeExtents
	}
	return rapid.SampledFrom(list).Draw(b.t, label)
}

// shape draws a shape of rank 0 to 4 within the element limit.
func (b *builder) shape(label string) []int {
	shape := make([]int, b.intRange(label+" rank", 0, 4))
	room := b.limits.Elements / 2
	for k := range shape {
		if b.limits.Typed {
			shape[k] = b.typedExtent(label)
		} else {
			shape[k] = b.extent(label)
		}
		if shape[k] > max(room, 1) {
			shape[k] = 1
		}
		room /= max(shape[k], 1)
	}
	return shape
}

// pick draws a value of the pool that passes a test, or nil.
func (b *builder) pick(label string, ok func(t *tensor.Tensor) bool) *tensor.Tensor {
	var list []*tensor.Tensor
	for i := len(b.pool) - 1; i >= 0; i-- { // the newest first: rapid shrinks to it
		if ok(b.pool[i]) {
			list = append(list, b.pool[i])
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[b.intRange(label, 0, len(list)-1)]
}

func isFloat(t *tensor.Tensor) bool { return t.DType() == ir.F32 }

// float picks an f32 value of at least some rank.
func (b *builder) float(rank int) *tensor.Tensor {
	return b.pick("value", func(t *tensor.Tensor) bool { return isFloat(t) && t.Rank() >= rank })
}

// constantShape is the shape, ok if no extent is symbolic or 0.
func constantShape(t *tensor.Tensor) (shape []int, ok bool) {
	for _, dim := range t.Shape() {
		n, isConst := dim.Int()
		if !isConst || n == 0 {
			return nil, false
		}
		shape = append(shape, int(n))
	}
	return shape, true
}

// solid picks an f32 value without symbolic or empty extents.
func (b *builder) solid(rank int) (t *tensor.Tensor, shape []int) {
	t = b.pick("value", func(t *tensor.Tensor) bool {
		_, ok := constantShape(t)
		return ok && isFloat(t) && t.Rank() >= rank
	})
	if t != nil {
		shape, _ = constantShape(t)
	}
	return t, shape
}

// axis draws an axis of t.
func (b *builder) axis(t *tensor.Tensor) int { return b.intRange("axis", 0, t.Rank()-1) }

// symbolicInput is a buffer cut to the symbolic size along one axis.
func symbolicInput(b *builder) *tensor.Tensor {
	shape := []int{b.sizeHigh()}
	if b.chance("leading axis") {
		shape = append([]int{b.intRange("rows", 1, 3)}, shape...)
	}
	along := len(shape) - 1
	if b.chance("trailing axis") {
		shape = append(shape, b.intRange("columns", 1, 4))
	}
	return b.input(ir.F32, shape...).Slice(along, b.g.Dims(0)[0], b.size)
}
