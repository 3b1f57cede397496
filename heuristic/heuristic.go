package heuristic

import (
	"fmt"

	"tgc/ir"

	"tgc/kernel/plan"
	"tgc/target"
)

// Knobs override numbers of the matvec heuristic; 0 is the target's default.
// The names are those of GPUs. On a CPU a "thread" of a row is a SIMD lane, and
// a block is what a worker takes at once, one row after the other.
type Knobs struct {
	NoMatvec      bool // MV=0: decline
	BlockSize     int  // MV_BLOCKSIZE: rows per block
	ThreadsPerRow int  // MV_THREADS_PER_ROW: threads that share a row
	RowsPerThread int  // MV_ROWS_PER_THREAD: rows held at once
	NoMatrices    bool // MMA=0: no matrix instructions
}

// Choice is the plan of one kernel.
type Choice struct {
	Plan    plan.Plan
	Why     string // "matvec: ..", with the numbers that decided
	Records []Record
}

// Record says that a heuristic was applied or declined, and why.
type Record struct {
	Heuristic string
	Axis      string // the axis or buffer that decided, if one did
	Value     int64  // its extent or bytes
	Applied   bool
	Reason    string // a key, for tests and searches: "streams-weight"
	Detail    string // the numbers, for people
}

// String prints a record on one line.
func (r Record) String() string {
	verb := "declined"
	if r.Applied {
		verb = "applied"
	}
	s := fmt.Sprintf("%s %s: %s", r.Heuristic, verb, r.Reason)
	if r.Axis != "" {
		s += fmt.Sprintf(" %s=%d", r.Axis, r.Value)
	}
	if r.Detail != "" {
		s += " (" + r.Detail + ")"
	}
	return s
}

// heuristic is a row of the table. try returns the opts and the text of why;
// the record says applied or declined.
type heuristic struct {
	name string
	doc  string
	try  func(a *analysis) (opts []plan.Opt, why string, record Record)
}

// table is in order of trial: the first that applies wins. A weight decides
// before everything else, because reading it is most of the time; attention
// before other reduces, whose lanes would run along the wrong range; what has
// no reduce is elementwise.
var table = []heuristic{
	{"matvec", "sums over a large operand of which every element is used once", tryMatvec},
	{"matmul", "sums over a large operand whose elements are used for several outputs", tryMatmul},
	{"attention", "a tuple reduce with components over ranges of their own", tryAttention},
	{"reduce", "any other reduce", tryReduce},
	{"elementwise", "stores without reduces", tryElementwise},
	{"fallback", "the empty plan: one point of the stores after the other", tryFallback},
}

// Choose plans a kernel. The plan is a function of the kernel's structure, the
// description and the knobs, and it is legal.
func Choose(arena *ir.Arena, sink *ir.UOp, desc *target.Desc, knobs Knobs) (Choice, error) {
	if sink.Op != ir.OpSink || len(sink.Src) == 0 {
		return Choice{}, fmt.Errorf("heuristic: %s with %d sources, want a sink of stores", sink.Op, len(sink.Src))
	}
	var c Choice
	a, err := newAnalysis(arena, sink, desc, knobs)
	if err != nil {
		return c, err
	}
	for _, h := range table {
		opts, why, record := h.try(a)
		record.Heuristic = h.name
		if record.Applied {
			chosen := plan.Plan{Opts: opts}
			err := plan.Legality(sink, chosen, desc)
			if err == nil {
				c.Plan, c.Why = chosen, h.name+": "+why
				c.Records = append(c.Records, record)
				return c, nil
			}
			record = Record{Heuristic: h.name, Reason: "illegal", Detail: err.Error()}
		}
		c.Records = append(c.Records, record)
	}
	return c, fmt.Errorf("heuristic: not even the empty plan is legal: %s", c.Records[len(c.Records)-1].Detail)
}

func tryFallback(*analysis) ([]plan.Opt, string, Record) {
	return nil, "no lanes, one point after the other", Record{Applied: true, Reason: "nothing-else"}
}

// declined is the result of a heuristic that does not apply.
func declined(reason, format string, args ...any) ([]plan.Opt, string, Record) {
	return nil, "", Record{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
