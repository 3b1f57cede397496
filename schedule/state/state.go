// Package state is what the passes of the schedule stage take and give: values
// over ranges, versions of buffers, and at the end kernels, with the analyses
// that look at several values (who reads whom, what must run before what, what a
// value costs). Its text form parses back (text.go, parse.go), and Verify checks
// its contract.
//
// It has no rule. Start at value.go.
package state

import (
	"fmt"

	"tgc/ir"
	"tgc/pass"
	"tgc/schedule/expr"
)

// Graph is the graph of values: what is computed, and who reads whom.
type Graph struct {
	*expr.Exprs
	Versions []*Version
	Values   []*Value
	Groups   int                // last number of a group of parts or an update, see Value.Group
	Mutable  map[*ir.UOp]bool   // BUFFER nodes that the graph assigns
	Users    [][]int            // value -> values that read it, sorted; see IndexUses
	ReadMemo []Reads            // value -> what it reads
	RestMemo map[*ir.UOp]*Value // expression -> the value made of it, for all readers

	useMemo  map[*ir.UOp][]Use
	instMemo map[instKey]*ir.UOp
}

// State is the whole state between two passes.
type State struct {
	*Graph
	Opt  Options
	Sink *ir.UOp // the tensor graph, until rangeify

	Initial  int        // number of values after rangeify
	Launches [][]*Draft // launches and their kernels, from order-levels on
	Out      *Schedule  // the kernels, from write-kernels on

	Pass    *pass.Info // the row that runs, for records
	Records []Record
	Err     error // the first error of a pass

	TileMemo map[TileKey]any // what tile rules found out about a reader and a value

	Used     Decisions // those of Opt.Decisions that a rule has asked for
	insists  bool      // the rule that runs was told to apply
	hashMemo map[*ir.UOp]uint64

	factMemo  map[*ir.UOp]Facts
	flatMemo  map[*ir.UOp]*ir.UOp // reads by their places in memory
	priceMemo map[formKey]int64
}

// TileKey names a reader and a value, and what they are made of.
type TileKey struct {
	Reader, Value, ReaderBody, ValueBody *ir.UOp
}

// New is the state before the first pass.
func New(a *ir.Arena, opt Options) *State {
	if opt.Decoders == nil {
		opt.Decoders = LookupDecoder
	}
	graph := &Graph{
		Exprs: expr.New(a), Mutable: make(map[*ir.UOp]bool), RestMemo: make(map[*ir.UOp]*Value),
		useMemo: make(map[*ir.UOp][]Use), instMemo: make(map[instKey]*ir.UOp),
	}
	return &State{
		Graph: graph, Opt: opt, factMemo: make(map[*ir.UOp]Facts),
		flatMemo: make(map[*ir.UOp]*ir.UOp), priceMemo: make(map[formKey]int64), hashMemo: make(map[*ir.UOp]uint64),
		TileMemo: make(map[TileKey]any),
	}
}

// Fail keeps the first error.
func (s *State) Fail(format string, args ...any) {
	if s.Err == nil {
		s.Err = fmt.Errorf(format, args...)
	}
}
