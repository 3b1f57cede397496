package heuristic

import (
	"cmp"
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/target"
)

// Knobs override numbers of the matvec heuristic; 0 is the target's default.
// The names are those of GPUs. On a CPU a "thread" of a row is a SIMD lane, and
// a block is what a worker takes at once, one row after the other.
type Knobs struct {
	NoMatvec      bool // TGC_MV=0: decline
	BlockSize     int  // TGC_MV_BLOCKSIZE: rows per block
	ThreadsPerRow int  // TGC_MV_THREADS_PER_ROW: threads that share a row
	RowsPerThread int  // TGC_MV_ROWS_PER_THREAD: rows held at once
	NoMatrices    bool // TGC_MMA=0: no matrix instructions

	// BlockThreads are the threads a block of a plan with prices; 0: any.
	BlockThreads int64

	// Share is the share of a GPU that such a kernel has, since others of its launch run
	// beside it; 0: all of it.
	Share float64
}

// share is the share of a GPU that a kernel has.
func (k *Knobs) share() float64 { return cmp.Or(k.Share, 1) }

// Choice is the plan of one kernel.
type Choice struct {
	Plan    plan.Plan
	Why     string // "matvec: ..", with the numbers that decided
	Records []Record
	tried   int // candidates that have been tried
	refused []plan.Plan
	Priced
}

// Priced is what kernels of a launch that becomes one grid agree by.
type Priced struct {
	// Prices are those of the cheapest plan of each number of threads a block, in
	// nanoseconds; nil where the plan was not chosen by its price. BlockThreads is that
	// of the plan, Bytes what of the weights the kernel reads.
	Prices       map[int64]float64
	BlockThreads int64
	Bytes        float64

	// Price is what the plan itself is expected to cost, in nanoseconds, on Share of the
	// device; 0 where it was not chosen by its price. Filled is the part of the multiprocessors
	// there that have blocks of it, 1 where others could not use the rest.
	Price, Share, Filled float64

	// Streams says that the plan's time is that of reading weights, which each kernel of a launch does at its share of the bandwidth.
	Streams bool
}

// way is one of several ways to make a product.
type way interface {
	comparable
	threads() int64  // of a block
	cost() float64   // ns
	filled() float64 // part of the multiprocessors
	byBytes() bool   // is its time
}

// pricedBy is a way chosen of a list, the cheapest first, with what it reads.
func pricedBy[W way](list []W, chosen W, bytes float64, knobs Knobs) Priced {
	p := Priced{Prices: make(map[int64]float64), BlockThreads: chosen.threads(), Bytes: bytes, Price: chosen.cost(), Share: knobs.share(), Filled: chosen.filled(), Streams: chosen.byBytes()}
	for _, w := range slices.Backward(list) {
		p.Prices[w.threads()] = w.cost()
	}
	return p
}

// firstAccepted is the first way of a list that the kernel accepts, of blocks of the threads
// that the knobs ask for, or else of any. The zero way: there is none.
func firstAccepted[W way](a *analysis, list []W, opts func(W) []plan.Opt) (none W) {
	for _, threads := range slices.Compact([]int64{a.knobs.BlockThreads, 0}) {
		for _, w := range list {
			if threads != 0 && w.threads() != threads {
				continue
			}
			p := plan.Plan{Opts: opts(w)}
			was := func(q plan.Plan) bool { return slices.Equal(p.Opts, q.Opts) }
			if !slices.ContainsFunc(a.refused, was) && kernel.Feasible(a.arena, a.sink, p, a.desc) == nil {
				return w
			}
		}
	}
	return none
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

// heuristic is a row of the table.
type heuristic struct {
	name string
	doc  string
	try  func(a *analysis) proposal
}

// proposal is what a heuristic says of a kernel: a plan, if its record says applied, and why.
type proposal struct {
	opts   []plan.Opt
	why    string
	record Record
	priced Priced
}

// of says what kernel a plan is for, before how it takes it.
func (c proposal) of(format string, args ...any) proposal {
	c.why = fmt.Sprintf(format, args...) + "; " + c.why
	return c
}

// table is in order of trial: the first that applies wins. A weight decides
// before everything else, because reading it is most of the time; attention
// before other reduces, whose lanes would run along the wrong range; what has
// no reduce is elementwise.
var table = []heuristic{
	{"scatter", "a fold whose terms count at one point of a store range", tryScatter},
	{"matvec", "sums over a large operand of which every element is used once", tryMatvec},
	{"matmul", "sums over a large operand whose elements are used for several outputs", tryMatmul},
	{"attention", "a tuple reduce with components over ranges of their own", tryAttention},
	{"reduce", "any other reduce", tryReduce},
	{"elementwise", "stores without reduces", tryElementwise},
	{"fallback", "one point of the stores after the other; on a GPU, threads side by side", tryFallback},
	{"empty", "the empty plan", tryEmpty},
}

// Choose plans a kernel. The plan is a function of the kernel's structure, the
// description and the knobs, and it is legal.
func Choose(arena *ir.Arena, sink *ir.UOp, desc *target.Desc, knobs Knobs) (Choice, error) {
	return choose(arena, sink, desc, knobs, Choice{})
}

// mostRefused is how many plans of a list with prices are carried out in vain before other heuristics are asked: each takes as long as a kernel's lowering.
const mostRefused = 8

// ChooseNext plans a kernel whose plan was refused when it was carried out: by the next cheapest
// plan where prices chose it, else by the heuristic without knobs, then by those behind it.
func ChooseNext(arena *ir.Arena, sink *ir.UOp, desc *target.Desc, knobs Knobs, refused Choice, cause error) (Choice, error) {
	if refused.tried == 0 {
		return refused, fmt.Errorf("heuristic: not the plan of a choice: %w", cause)
	}
	at := candidates(knobs)[refused.tried-1]
	at.refused(&refused, "refused", refused.Plan.String()+": "+cause.Error())
	next := Choice{Records: refused.Records, tried: refused.tried, refused: append(refused.refused, refused.Plan)}
	if refused.Prices != nil && len(next.refused) <= mostRefused {
		next.tried-- // the same once more
	}
	return choose(arena, sink, desc, knobs, next)
}

// candidate is a heuristic with knobs, or without them where it is tried again.
type candidate struct {
	*heuristic
	knobs Knobs
	again bool
}

// candidates are in order of trial.
func candidates(knobs Knobs) []candidate {
	var out []candidate
	plain := Knobs{NoMatvec: knobs.NoMatvec, NoMatrices: knobs.NoMatrices, BlockThreads: knobs.BlockThreads, Share: knobs.Share}
	for i := range table {
		out = append(out, candidate{&table[i], knobs, false})
		if knobs != plain {
			out = append(out, candidate{&table[i], plain, true})
		}
	}
	return out
}

// refused notes that a kernel does not accept a candidate's plan.
func (at candidate) refused(c *Choice, reason, detail string) {
	c.Records = append(c.Records, Record{Heuristic: at.name, Reason: reason, Detail: detail})
}

func choose(arena *ir.Arena, sink *ir.UOp, desc *target.Desc, knobs Knobs, c Choice) (Choice, error) {
	if sink.Op != ir.OpSink || len(sink.Src) == 0 {
		return c, fmt.Errorf("heuristic: %s with %d sources, want a sink of stores", sink.Op, len(sink.Src))
	}
	a, err := newAnalysis(arena, sink, desc, knobs)
	if err != nil {
		return c, err
	}
	a.refused = c.refused
	for list := candidates(knobs); c.tried < len(list); {
		at, last := list[c.tried], Record{}
		if len(c.Records) > 0 {
			last = c.Records[len(c.Records)-1]
		}
		c.tried++
		illegal := last.Heuristic == at.name && (last.Reason == "illegal" || last.Reason == "refused")
		if at.again && !illegal {
			continue
		}
		a.knobs = at.knobs
		made := at.try(a)
		made.record.Heuristic = at.name
		if !made.record.Applied {
			c.Records = append(c.Records, made.record)
			continue
		}
		chosen := a.withUnits(made.opts)
		if err := plan.Legality(sink, chosen, desc); err != nil {
			at.refused(&c, "illegal", err.Error())
			continue
		}
		c.Plan, c.Why, c.Priced = chosen, at.name+": "+made.why, made.priced
		if at.again {
			c.Why += "; not as the knobs say: " + last.Detail
		}
		c.Records = append(c.Records, made.record)
		return c, nil
	}
	return c, fmt.Errorf("heuristic: not even the empty plan is legal: %s", c.Records[len(c.Records)-1].Detail)
}

// tryFallback takes what no other heuristic does. A block of a GPU takes as many
// points as an elementwise one.
func tryFallback(a *analysis) proposal {
	p := a.plan()
	if stores := a.axesOf(plan.StoreAxis); a.desc.Kind == target.GPU {
		p.fillBlock(1)
		if len(stores) > 0 && len(a.axesOf(plan.ReduceAxis)) == 0 {
			p.copiesOfThread(stores[len(stores)-1], a.points(stores))
		}
	}
	if len(p.opts) == 0 {
		return declined("nothing-to-share", "no store range of constant extent, or no threads")
	}
	return proposal{p.opts, "no lanes, one point a thread", nothingElse, Priced{}}
}

func tryEmpty(*analysis) proposal {
	return proposal{nil, "no lanes, one point after the other", nothingElse, Priced{}}
}

// nothingElse is the record of plans that every kernel has.
var nothingElse = Record{Applied: true, Reason: "nothing-else"}

// declined is what a heuristic says that does not apply.
func declined(reason, format string, args ...any) proposal {
	return proposal{record: Record{Reason: reason, Detail: fmt.Sprintf(format, args...)}}
}

// declinedFor is declined for what an axis is.
func (a *analysis) declinedFor(axis int, reason, format string, args ...any) proposal {
	c := declined(reason, format, args...)
	c.record.Axis, c.record.Value = a.axes[axis].Name, a.size(axis)
	return c
}

// first is what the first of several ways says that applies, or else the last one.
func (a *analysis) first(ways ...func(a *analysis) proposal) (c proposal) {
	for _, try := range ways {
		if c = try(a); c.record.Applied {
			break
		}
	}
	return c
}
