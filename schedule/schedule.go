package schedule

import (
	"context"
	"fmt"
	"slices"

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
	a    *ir.Arena
	opt  Options
	sink *ir.UOp // the tensor graph, until rangeify

	initial  int        // values after rangeify
	launches [][]*draft // levels and their kernels, from order-levels
	out      *Schedule  // from write-kernels

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
	heights  ir.NodeMap[int]
	bounds   *ir.Bounds
	fields   ir.NodeMap[bool] // see readsField
	bits     ir.NodeMap[bool] // integers that are made of the bits of floats
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

// Run schedules a tensor graph SINK(ASSIGN...). The result is a function of the
// graph and the options alone. Passes lists what it does.
func Run(ctx context.Context, a *ir.Arena, sink *ir.UOp, opt Options) (*Schedule, error) {
	s := newScheduler(a, opt)
	s.sink = sink
	if err := passes.Run(ctx, s, "", opt.Control); err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	s.out.Records, s.out.Values = s.records, s.initial
	if opt.Explain {
		s.out.Records = settledRecords(s.records)
	}
	return s.out, nil
}

// newScheduler is the state before the first pass. A rule whose every row is
// left out counts as switched off for the rules that reckon with it.
func newScheduler(a *ir.Arena, opt Options) *scheduler {
	if opt.Decoders == nil {
		opt.Decoders = LookupDecoder
	}
	for _, rule := range Rules() {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.rule == rule && !opt.Control.Skips(&r.Info) }) {
			opt.Rules = opt.Rules.Without(rule)
		}
	}
	return &scheduler{
		a: a, opt: opt,
		versionOf: make(map[*ir.UOp]int), valueOf: make(map[*ir.UOp]*value), atMemo: make(map[atKey]*ir.UOp),
		nextRange: firstFree, bounds: ir.NewBounds(),
		index: rewrite.NewSimplifier(a), linear: ir.NewLinearizer(a),
		opsMemo: make(map[*ir.UOp]int64), factMemo: make(map[*ir.UOp]facts), useMemo: make(map[*ir.UOp][]use), mutable: make(map[*ir.UOp]bool),
		instMemo: make(map[instKey]*ir.UOp), restMemo: make(map[*ir.UOp]*value),
	}
}

// fail keeps the first error.
func (s *scheduler) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}
