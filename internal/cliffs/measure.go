package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"tgc/engine"
	"tgc/engine/traffic"
	"tgc/gguf"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/nn"
	"tgc/packed"
	"tgc/schedule"
	"tgc/target"
)

// cacheRows is the context of the steps; depth the position that is decoded.
const (
	cacheRows = 1024
	depth     = 128
)

// compiler compiles subjects; it keeps the model of the last one.
type compiler struct {
	name  string
	file  *gguf.File
	model *llm.Model
}

func (c *compiler) close() {
	if c.file != nil {
		c.file.Close()
	}
}

// open makes the outline of a model.
func (c *compiler) open(ctx context.Context, name string) error {
	if c.name == name {
		return nil
	}
	shape, err := synth.Lookup(name)
	if err != nil {
		return err
	}
	file, err := synth.Outline(ctx, shape)
	if err != nil {
		return err
	}
	c.close()
	c.file, c.name = file, name
	c.model, err = llm.NewModel(file)
	return err
}

// compile is the step of a subject.
func (c *compiler) compile(ctx context.Context, s subject) (*engine.Compiled, error) {
	if err := c.open(ctx, s.model()); err != nil {
		return nil, err
	}
	mode, err := nn.ParseNumeric(s.mode)
	if err != nil {
		return nil, err
	}
	desc, err := target.Parse(s.target)
	if err != nil {
		return nil, err
	}
	v := llm.Variant{Batch: s.batch, Tokens: max(s.tokens, 1), Context: cacheRows, Numeric: mode}
	step, err := llm.CompileStep(ctx, c.model, v, depth, desc, engine.Config{})
	if err != nil {
		return nil, err
	}
	return step.Compiled, nil
}

// weight is a matrix that a kernel reads.
type weight struct {
	slot  int
	text  string // [rows x columns] type
	bytes int64  // read
	bulk  []span // what is most of it: all of a plain one, the planes of large fields
}

// span is from a byte to another, which it does not have.
type span struct{ from, to int64 }

// bulkAt reports an offset into what is most of the weight.
func (w *weight) bulkAt(offset int64) bool {
	return slices.ContainsFunc(w.bulk, func(s span) bool { return s.from <= offset && offset < s.to })
}

// bulkOf are the planes of the fields that are a part of a block's bytes of largeField or
// more. Scales are not: a thread has a few points of a block, and needs one scale.
func bulkOf(b *schedule.Buffer) []span {
	f, ok := packed.Lookup(b.Format)
	if !ok || f.IsPlain() {
		return []span{{0, math.MaxInt64}}
	}
	rows, blocks := int64(1), int64(0)
	for i, d := range b.Shape {
		n, _ := d.Int()
		if i == len(b.Shape)-1 {
			blocks = n / int64(f.BlockElems)
		} else {
			rows *= n
		}
	}
	var list []span
	for i, place := range packed.Planes.Place(f, rows, blocks).Fields {
		if float64(f.Fields[i].Bytes()) >= largeField*float64(f.BlockBytes) {
			list = append(list, span{place.Base, place.Base + rows*place.RowStride})
		}
	}
	return list
}

// part is a kernel, or one of the kernels that a merged launch has in one grid.
type part struct {
	*engine.Kernel
	weights []weight
	bytes   int64 // of weights

	loads        loads
	share        share
	instructions float64 // executed, all threads together
}

// launched is a kernel as it is launched.
type launched struct {
	*engine.Kernel
	parts []part
	bytes int64
}

// weights names the matrices.
func (l *launched) text() string {
	var names []string
	for _, p := range l.parts {
		for _, w := range p.weights {
			names = append(names, w.text)
		}
	}
	return strings.Join(names, " ")
}

// kernelsOf lists the kernels that read weightBytes of weights or more.
func kernelsOf(c *engine.Compiled) []launched {
	written, seen := writtenBuffers(c), make(map[*engine.Kernel]bool)
	var list []launched
	for _, calls := range c.Launches {
		for _, call := range calls {
			if seen[call.Kernel] {
				continue
			}
			seen[call.Kernel] = true
			if l := partsOf(c, call, written); l.bytes >= weightBytes {
				list = append(list, l)
			}
		}
	}
	return list
}

// measure looks at the programs of a kernel's parts.
func (l *launched) measure(desc *target.Desc) (err error) {
	for i := range l.parts {
		p := &l.parts[i]
		p.loads, p.instructions = loadsOf(p), instructionsOf(p.Program)
		if p.share, err = p.longestShare(desc); err != nil {
			return err
		}
	}
	return nil
}

// partsOf finds the weights of a kernel that is launched.
func partsOf(c *engine.Compiled, call engine.Call, written map[int]bool) launched {
	l := launched{Kernel: call.Kernel}
	kernels, args := call.Kernel.Parts, call.Args
	if len(kernels) == 0 {
		kernels = []*engine.Kernel{call.Kernel}
	}
	for _, k := range kernels {
		arena := ir.NewArena()
		t := traffic.Of(arena, arena.Import(k.AST), map[string]int64{llm.VarLength: depth + 1})
		p := part{Kernel: k}
		for slot, arg := range t.Args {
			if b := &c.Schedule.Buffers[args[slot]]; b.UserID >= 0 && !written[args[slot]] && arg.Read >= matrixBytes {
				p.weights = append(p.weights, weight{slot, matrixText(b), arg.Read, bulkOf(b)})
				p.bytes += arg.Read
			}
		}
		args = args[len(t.Args):]
		l.parts, l.bytes = append(l.parts, p), l.bytes+p.bytes
	}
	return l
}

// writtenBuffers are the buffers that a kernel of the step writes.
func writtenBuffers(c *engine.Compiled) map[int]bool {
	written := make(map[int]bool)
	for _, calls := range c.Launches {
		for _, call := range calls {
			for _, p := range call.Kernel.Program.Params {
				if p.Write && p.Slot < len(call.Args) {
					written[call.Args[p.Slot]] = true
				}
			}
		}
	}
	return written
}

// matrixText names a matrix by what it is.
func matrixText(b *schedule.Buffer) string {
	var dims []string
	for _, d := range b.Shape {
		n, _ := d.Int()
		dims = append(dims, fmt.Sprint(n))
	}
	format := b.Format
	if format == "" {
		format = b.DType.String()
	}
	return strings.Join(dims, "x") + ":" + format
}

// share is how threads share a row of weights.
type share struct {
	threads    int64
	points     int64 // of a thread
	iterations int64 // of the loops in which a thread sums them
}

// longestShare is the share of a part's rows whose loops are the longest.
func (p *part) longestShare(desc *target.Desc) (longest share, err error) {
	axes, _, err := plan.Read(p.AST, p.Plan, desc)
	if err != nil {
		return share{}, err
	}
	free, err := plan.NewFree(p.AST)
	if err != nil {
		return share{}, err
	}
	of := lists.Set(lists.Map(p.weights, func(w weight) int { return w.slot }))
	for _, u := range ir.Toposort(p.AST) {
		if (u.Op != ir.OpLoad && u.Op != ir.OpField) || u.Src[0].Op != ir.OpParam || !of[u.Src[0].Arg.(ir.ParamArg).Slot] {
			continue
		}
		s := share{1, 1, 1}
		for _, i := range free.Of(u).List() {
			if n, ok := axes[i].Axis.Size(); ok && axes[i].Axis.Kind == plan.ReduceAxis {
				threads, taken := takenOf(&axes[i])
				s.threads, s.points, s.iterations = s.threads*threads, s.points*ceil(n, threads), s.iterations*ceil(n, taken)
			}
		}
		if s.iterations > longest.iterations || s.iterations == longest.iterations && s.points > longest.points {
			longest = s
		}
	}
	return longest, nil
}

func ceil(x, y int64) int64 { return (x + y - 1) / y }

// takenOf is how many threads have parts of a reduce, and how many of its points are
// taken at once by all of them.
func takenOf(p *plan.AxisPlan) (threads, taken int64) {
	threads, taken = 1, 1
	for _, s := range p.Segments {
		switch s.Role {
		case plan.Serial:
			continue
		case plan.Group, plan.Warp, plan.Cluster:
			threads *= s.Size
		case plan.Matrix:
			threads *= matrixLanes
		}
		taken *= s.Size
	}
	return threads, taken
}

// matrixLanes are the threads of a warp that have parts of a row's points in a matrix
// instruction.
const matrixLanes = 4
