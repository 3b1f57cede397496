package viz

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"tgc/engine"
	"tgc/internal/lists"
	"tgc/ir/program"
	"tgc/schedule"
)

// Kernel is a kernel, or a part of a merged one, which has plan and program but no code of
// its own.
type Kernel struct {
	Name     string   `json:"name"`
	Parts    []int    `json:"parts"` // kernels
	In       int      `json:"in"`    // the merged kernel of which it is a part; -1: it is none
	Origins  []int    `json:"origins"`
	Formula  []string `json:"formula"` // lines
	Plan     []string `json:"plan"`
	PlanFrom string   `json:"plan_from"`
	Why      string   `json:"why"`
	Records  []string `json:"records"` // heuristics that were applied or declined
	// Candidates are the cheapest plan of each number of threads of a block.
	Candidates []Candidate `json:"candidates"`
	Price      float64     `json:"price_ns"` // 0: not chosen by its price

	Launches int     `json:"launches"`
	Grid     []int64 `json:"grid"`
	Block    []int64 `json:"block"`
	Shared   int64   `json:"shared_bytes"`
	Read     int64   `json:"bytes_read"`
	Written  int64   `json:"bytes_written"`
	Flops    int64   `json:"flops"`
	Args     []Arg   `json:"args"`
	Time     *Time   `json:"time,omitempty"`

	Form    int  `json:"form"`    // text: the kernel with its plan; -1: none
	Program int  `json:"program"` // text, as it is rendered
	Source  Code `json:"source"`
	Machine Code `json:"machine"`
}

// Candidate is a plan that was priced.
type Candidate struct {
	Threads int64   `json:"threads"`
	Price   float64 `json:"ns"`
	Chosen  bool    `json:"chosen"`
}

// Arg is an argument of a kernel.
type Arg struct {
	Name   string `json:"name"`
	Role   string `json:"role"`
	Type   string `json:"type"`
	Bytes  int64  `json:"bytes"`
	Access string `json:"access"`
}

// Time is what was measured of a kernel, as `tgc bench --kernels --json` prints it.
type Time struct {
	Count    int     `json:"count"`
	Time     float64 `json:"time_us"` // of all calls of a step
	Share    float64 `json:"share"`
	Rate     float64 `json:"gb_s"`
	Fraction float64 `json:"fraction_of_read_gb_s"`
	GFLOPS   float64 `json:"gflops"`
}

// kernels describes the kernels, then the parts of those that are merged.
func (b *builder) kernels(ctx context.Context) error {
	b.Kernels = []Kernel{}
	for _, k := range b.compiled.Kernels {
		if b.wants(k) {
			b.number(k)
		}
	}
	for _, k := range slices.Clone(b.sources) {
		for _, part := range k.Parts {
			at := b.number(part)
			b.Kernels[at].In = b.numbers[k.Name]
			b.Kernels[b.numbers[k.Name]].Parts = append(b.Kernels[b.numbers[k.Name]].Parts, at)
		}
	}
	if len(b.Kernels) == 0 && b.options.Kernel != "" {
		names := lists.Map(b.compiled.Kernels, func(k *engine.Kernel) string { return k.Name })
		return fmt.Errorf("there is no kernel %q; there are %q", b.options.Kernel, names)
	}
	origins := b.compiled.Origins()
	b.As = origins.As
	for i, k := range b.sources {
		b.Kernels[i].Origins = append([]int{}, origins.Of[k]...)
		b.describe(&b.Kernels[i], k)
	}
	for i := range b.manifest.Kernels {
		m := &b.manifest.Kernels[i]
		if at, ok := b.numbers[m.Name]; ok {
			b.Kernels[at].traffic(m)
		}
	}
	return ctx.Err()
}

// number gives a kernel its place in the list, the same to a part of two.
func (b *builder) number(k *engine.Kernel) int {
	if at, ok := b.numbers[k.Name]; ok {
		return at
	}
	b.numbers[k.Name] = len(b.Kernels)
	b.Kernels, b.sources = append(b.Kernels, Kernel{Name: k.Name, Parts: []int{}, In: none, Form: none, Program: none, Source: noCode(), Machine: noCode()}), append(b.sources, k)
	return len(b.Kernels) - 1
}

func (b *builder) describe(to *Kernel, k *engine.Kernel) {
	to.Why, to.PlanFrom = k.Why, string(k.Origin)
	to.Plan, to.Records, to.Formula, to.Candidates, to.Args = []string{}, []string{}, []string{}, []Candidate{}, []Arg{}
	for _, opt := range k.Plan.Opts {
		to.Plan = append(to.Plan, opt.String())
	}
	for _, r := range k.Records {
		to.Records = append(to.Records, r.String())
	}
	if len(k.Parts) == 0 {
		to.Formula = splitLines(schedule.KernelText(k.AST))
	}
	prices, chosen := k.Prices()
	for _, threads := range slices.Sorted(maps.Keys(prices)) {
		to.Candidates = append(to.Candidates, Candidate{threads, prices[threads], threads == chosen})
	}
	to.Price, _ = k.Price()
	if t, ok := b.options.Times[k.Name]; ok {
		to.Time = &t
	}
	p := k.Program
	to.Grid, to.Block, to.Shared = append([]int64{}, p.Grid...), append([]int64{}, p.Block...), program.SharedBytes(p)
	to.Program = b.texts.add(withOrigins(program.PrintOrigins(p), to.Origins), none)
}

func (k *Kernel) traffic(m *engine.ManifestKernel) {
	k.Launches, k.Read, k.Written, k.Flops = m.Launches, m.BytesRead, m.BytesWritten, m.Flops
	for _, a := range m.Args {
		typ := a.DType
		if a.Format != "" {
			typ = a.Format
		}
		k.Args = append(k.Args, Arg{a.Name, string(a.Role), typ, a.Bytes, a.Access})
	}
}
