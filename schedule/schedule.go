package schedule

import (
	"context"
	"fmt"

	"tgc/ir"
	"tgc/rewrite"
)

// Schedule is the result: kernels in launches, and the buffers they use.
type Schedule struct {
	Buffers    []Buffer
	Launches   []Launch
	ArenaBytes int64 // size of the arena of temporaries
	Records    []Record
	Values     int // values after rangeify, before any rule
}

// Buffer is a user's buffer or a temporary.
type Buffer struct {
	UserID int64 // BufferArg.ID; -1: temporary
	DType  ir.DType
	Shape  []*ir.UOp
	Format string
	Bytes  int64 // upper bound; of a packed buffer 0: its format knows
	Offset int64 // in the arena, temporaries only
}

// Launch is a set of independent kernels that start together.
type Launch struct{ Kernels []*Kernel }

// Kernel is SINK(STORE...) with its arguments.
type Kernel struct {
	AST     *ir.UOp
	Args    []int // slot -> index in Schedule.Buffers
	Name    string
	Reasons []string // what was fused into it and why, for people
}

// scheduler is the state of one run.
type scheduler struct {
	a   *ir.Arena
	opt Options

	shapes    *ir.Shapes
	versionOf map[*ir.UOp]int    // BUFFER or ASSIGN node -> index in versions
	valueOf   map[*ir.UOp]*value // tensor node -> its value
	atMemo    map[atKey]*ir.UOp

	versions  []*version
	values    []*value
	nextRange int
	groups    int // of parts, see value.group

	free     freeMemo
	mentions mentionMemo
	heights  ir.Memo[int]
	bounds   *ir.Bounds
	fields   ir.Memo[bool] // see readsField
	bits     ir.Memo[bool] // integers that are made of the bits of floats
	index    *rewrite.Simplifier
	linear   *ir.Linearizer
	opsMemo  map[*ir.UOp]int64
	factMemo map[*ir.UOp]facts
	useMemo  map[*ir.UOp][]use
	instMemo map[instKey]*ir.UOp
	restMemo map[*ir.UOp]*value

	mutable  map[*ir.UOp]bool // BUFFER nodes that the graph assigns
	users    [][]int          // value -> values that read it, sorted
	readMemo []reads          // value -> what it reads

	records []Record
	err     error
}

// phase is one row of the pipeline inside this package.
type phase struct {
	name string
	run  func(*scheduler, *ir.UOp)
	doc  string
}

// phases in order. A before B, because:
//   - R0 first: the rules need index expressions, not movement ops;
//   - R0s before the algebra: a fused projection must fall apart before its
//     parts get different treatment;
//   - R0f before the algebra, which then sees the stored value's own factors;
//   - algebra before placement: the cascade needs maximum, exponentials and
//     sums as values of their own;
//   - R8 late: only when kernels exist is it known which are too narrow;
//   - narrow last: what is stored is settled then.
var phases = []phase{
	{"R0", (*scheduler).rangeify, "cut the graph into values, movement ops into indices"},
	{"slices", (*scheduler).splitSlices, "R0s: one value per box that is read"},
	{"forward", (*scheduler).forwardReads, "R0f: readers of an assigned version take what is stored"},
	{"algebra", (*scheduler).algebra, "R2 R2m R3 R2c R2 R5, each value once"},
	{"placement", (*scheduler).place, "R5p R1p R1 R4i R6 R6p to a fixpoint"},
	{"grid split", (*scheduler).splitGrids, "R8, then placement again for what combines the chunks"},
	{"pieces", (*scheduler).splitSums, "R8k, of the sums that are left"},
	{"narrow", (*scheduler).storeNarrow, "halves are stored as such"},
}

// Run schedules a tensor graph SINK(ASSIGN...). The result is a function of the
// graph and the options alone.
func Run(ctx context.Context, a *ir.Arena, sink *ir.UOp, opt Options) (*Schedule, error) {
	if opt.Decoders == nil {
		opt.Decoders = LookupDecoder
	}
	s := &scheduler{
		a: a, opt: opt,
		versionOf: make(map[*ir.UOp]int), valueOf: make(map[*ir.UOp]*value), atMemo: make(map[atKey]*ir.UOp),
		nextRange: firstFree, bounds: ir.NewBounds(),
		index: rewrite.NewSimplifier(a), linear: ir.NewLinearizer(a),
		opsMemo: make(map[*ir.UOp]int64), factMemo: make(map[*ir.UOp]facts), useMemo: make(map[*ir.UOp][]use), mutable: make(map[*ir.UOp]bool),
		instMemo: make(map[instKey]*ir.UOp), restMemo: make(map[*ir.UOp]*value),
	}
	initial := 0
	for i, p := range phases {
		if i == 1 {
			initial = len(s.values)
		}
		p.run(s, sink)
		if s.err == nil {
			s.err = ctx.Err()
		}
		if s.err != nil {
			return nil, fmt.Errorf("schedule: %s: %w", p.name, s.err)
		}
	}
	out, err := s.emit()
	if err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	out.Records, out.Values = s.records, initial
	if opt.Explain {
		out.Records = settledRecords(s.records)
	}
	return out, nil
}

// fail keeps the first error.
func (s *scheduler) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}
