package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"tgc/engine"
	"tgc/internal/cudatools"
	"tgc/internal/ptxemu"
	"tgc/ir/program"
	"tgc/render/gpu"
	"tgc/target"
)

// Limits of the checks; doc.go says what they bound.
const (
	weightBytes = 1 << 20
	matrixBytes = 64 << 10
	mostOver    = 2.0
	fullWarps   = 4
	fullShare   = 0.75
	alonePoints = 256
	mostNarrow  = 0.5
	largeField  = 0.25
	mostInTurn  = 4
	mostSpilled = 256
	crowded     = 1.5
)

// The checks, in the order of doc.go.
const (
	noPlan = "no-plan"
	price  = "price"
	narrow = "narrow"
	alone  = "alone"
	byByte = "bytes"
	inTurn = "in-turn"
	spill  = "spill"
)

// finding is a check that a kernel does not pass.
type finding struct {
	check     string
	subject   subject
	weights   string  // which the kernel reads
	detail    string  // numbers, for people
	value     float64 // how bad it is, among those of the check
	heuristic string
}

// checker compiles subjects and checks their kernels.
type checker struct {
	compiler
	tools *cudatools.Tools // nil: spills are not looked at
}

// check compiles a subject and lists what its kernels do not pass, each once.
func (c *checker) check(ctx context.Context, s subject) ([]finding, error) {
	compiled, err := c.compile(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s, err)
	}
	var list []finding
	for _, l := range kernelsOf(compiled) {
		k := &checked{subject: s, kernel: &l, desc: compiled.Target, machine: machineOf(compiled.Target)}
		if err := k.all(ctx, c.tools); err != nil {
			return nil, fmt.Errorf("%s: kernel %s: %w", s, l.Name, err)
		}
		list = append(list, k.found...)
	}
	slices.SortStableFunc(list, func(x, y finding) int {
		return cmp.Or(strings.Compare(x.check, y.check), strings.Compare(x.weights, y.weights), cmp.Compare(y.value, x.value))
	})
	return slices.CompactFunc(list, func(x, y finding) bool { return x.check == y.check && x.weights == y.weights }), nil
}

// checked is a kernel that is checked.
type checked struct {
	machine
	subject subject
	kernel  *launched
	desc    *target.Desc
	found   []finding
}

func (k *checked) add(check, why, weights string, value float64, format string, args ...any) {
	heuristic, _, _ := strings.Cut(why, ":")
	k.found = append(k.found, finding{check, k.subject, weights, fmt.Sprintf(format, args...), value, heuristic})
}

// all makes the checks of a kernel. The roofline is one of decode steps: of prompts registers are looked at alone.
func (k *checked) all(ctx context.Context, tools *cudatools.Tools) error {
	if k.subject.tokens == 0 {
		if err := k.kernel.measure(k.desc); err != nil {
			return err
		}
		k.run()
	}
	return k.spills(ctx, tools)
}

// run makes the checks of the parts, then those of the grid.
func (k *checked) run() {
	for i := range k.kernel.parts {
		if p := &k.kernel.parts[i]; p.bytes > 0 {
			k.part(p)
		}
	}
	l := k.kernel
	blocks, threads := float64(l.Program.Units()), float64(l.Program.Threads())
	if blocks*threads < k.units*fullWarps*k.warp || blocks < fullShare*k.units {
		k.add(narrow, l.Why, l.text(), k.units/blocks, "%.0f blocks of %.0f threads: %s", blocks, threads, l.parts[0].Plan)
	}
}

func (k *checked) part(p *part) {
	text, threads := p.text(), p.Program.Threads()
	if len(p.Plan.Opts) == 0 || threads < int64(k.warp) || strings.HasPrefix(p.Why, "fallback") {
		k.add(noPlan, p.Why, text, float64(p.bytes), "%d threads a block: %s", threads, p.Why)
	}
	ns, share := k.priceOf(p)
	roof := k.roofline(float64(p.bytes), p.instructions, share)
	if p.bytes >= weightBytes && ns > mostOver*roof {
		k.add(price, p.Why, text, ns/roof, "%.1f us, roofline %.1f us (bytes %.1f, instructions %.1f) of %.2f of the device: %s",
			ns/1000, roof/1000, float64(p.bytes)/k.bandwidth/1000/share, p.instructions/k.rate/1000/share, share, p.Plan)
	}
	if s := &p.share; s.threads == 1 && s.points > alonePoints || k.chain(p) > roof {
		k.add(alone, p.Why, text, float64(s.points), "%d points a thread in %d iterations, %d threads a row: %s", s.points, s.iterations, s.threads, p.Plan)
	}
	if n := p.loads.inTurn; n > mostInTurn {
		k.add(inTurn, p.Why, text, n, "%.0f loads one after the other: %s", n, p.Plan)
	}
	if n := &p.loads; n.narrow > mostNarrow*(n.narrow+n.wide) {
		k.add(byByte, p.Why, text, n.narrow, "%.0f narrow loads, %.0f wide: %s", n.narrow, n.wide, p.Plan)
	}
}

// spills assembles a kernel that holds more words at once, as its text is written, than its threads have registers: an assembler
// that takes seconds for some need not see the others.
func (k *checked) spills(ctx context.Context, tools *cudatools.Tools) error {
	if tools == nil {
		return nil
	}
	text, err := engine.Source(k.kernel.Program, k.desc)
	if err != nil {
		return err
	}
	module, err := ptxemu.Parse(text)
	if err != nil {
		return err
	}
	most := registersOf(k.kernel.Program)
	if !slices.ContainsFunc(module.Kernels(), func(e *ptxemu.Kernel) bool { return float64(e.Registers) > crowded*most }) {
		return nil
	}
	_, arch, _ := strings.Cut(k.desc.Name, ":")
	made, err := tools.Ptxas(ctx, text, arch)
	if err != nil {
		return err
	}
	if n := made.SpillStores + made.SpillLoads; n > mostSpilled {
		k.add(spill, k.kernel.Why, k.kernel.text(), float64(n), "%d bytes spilled, %d registers, %d threads a block: %s", n, made.Registers, k.kernel.Program.Threads(), k.kernel.Plan)
	}
	return nil
}

// mostRegisters are those that an instruction can name.
const mostRegisters = 255

// registersOf are those that a thread of a program may have.
func registersOf(p *program.Program) float64 {
	o := gpu.OptionsFor(p)
	most := min(gpu.Registers/(p.Threads()*int64(max(o.MinBlocks, 1))), mostRegisters)
	if o.MaxRegisters > 0 {
		most = min(most, int64(o.MaxRegisters))
	}
	return float64(most)
}

// text names the matrices of a part.
func (p *part) text() string { return (&launched{parts: []part{*p}}).text() }
