package microbench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"strings"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime"
	"tgc/target"
	"tgc/tensor"
)

// A Program is a chain of everyday ops on a square matrix. Fused it is compiled as it
// stands, fenced with a CONTIGUOUS between the ops, so that every step is stored:
// fusing must not make it slower.
type Program struct {
	Name  string
	Size  int
	steps []programStep
}

// programStep applies an op to an earlier result and may add another one, 0 the input.
type programStep struct {
	op       *everydayOp
	from     int
	residual int // -1: none
}

// Pairs are all programs of two ops whose names hold the text.
func Pairs(size int, name string) []Program {
	var list []Program
	for i := range everyday {
		for j := range everyday {
			p := Program{Size: size, Name: everyday[i].name + " + " + everyday[j].name, steps: []programStep{{&everyday[i], 0, -1}, {&everyday[j], 1, -1}}}
			if strings.Contains(p.Name, name) {
				list = append(list, p)
			}
		}
	}
	return list
}

// RandomPrograms are programs of three to six ops, some of which read an earlier
// result or are added to one.
func RandomPrograms(count, size int) []Program {
	var list []Program
	for seed := range count {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		p := Program{Size: size}
		var names []string
		for k := range 3 + r.IntN(4) {
			s := programStep{op: &everyday[r.IntN(len(everyday))], from: k, residual: -1}
			if r.IntN(5) == 0 {
				s.from = r.IntN(k + 1)
			}
			if r.IntN(4) == 0 {
				s.residual = r.IntN(k + 1)
			}
			p.steps, names = append(p.steps, s), append(names, s.op.name)
		}
		p.Name = strings.Join(names, " + ")
		list = append(list, p)
	}
	return list
}

// Graph builds the program.
func (p *Program) Graph(fenced bool) (*tensor.Graph, error) {
	b := &builder{graph: tensor.NewGraph(), n: p.Size}
	results := []*tensor.Tensor{b.graph.Input("x", ir.F32, p.Size, p.Size)}
	for i, s := range p.steps {
		y := s.op.apply(b, results[s.from])
		if fenced && s.residual >= 0 {
			y = y.Contiguous()
		}
		if s.residual >= 0 {
			y = y.Add(results[s.residual])
		}
		if fenced && i < len(p.steps)-1 {
			y = y.Contiguous()
		}
		results = append(results, y)
	}
	b.graph.Output("y", results[len(results)-1])
	return b.graph, b.graph.Err()
}

// Side is one of a program's two forms.
type Side struct {
	Kernels      []string `json:"kernels"`
	Instructions float64  `json:"instructions"` // that its kernels execute
	Bytes        int64    `json:"bytes"`        // that they read and write
	Price        float64  `json:"price_us"`     // by the target's numbers
	Time         float64  `json:"time_us,omitempty"`
}

// Compared is a program's two forms.
type Compared struct {
	Name   string `json:"name"`
	Size   int    `json:"size"`
	Fused  Side   `json:"fused"`
	Fenced Side   `json:"fenced"`
}

// PriceRatio is how many times dearer the program is when it is fused.
func (c *Compared) PriceRatio() float64 { return c.Fused.Price / c.Fenced.Price }

// TimeRatio is how many times longer it takes.
func (c *Compared) TimeRatio() float64 { return c.Fused.Time / c.Fenced.Time }

// Price compiles both forms for a target and counts what their kernels do.
func (p *Program) Price(ctx context.Context, desc *target.Desc, config engine.Config) (*Compared, error) {
	fused, err := p.side(ctx, desc, config, false)
	if err != nil {
		return nil, err
	}
	fenced, err := p.side(ctx, desc, config, true)
	return &Compared{Name: p.Name, Size: p.Size, Fused: fused, Fenced: fenced}, err
}

// side compiles one form.
func (p *Program) side(ctx context.Context, desc *target.Desc, config engine.Config, fenced bool) (Side, error) {
	g, err := p.Graph(fenced)
	if err != nil {
		return Side{}, fmt.Errorf("%s: %w", p.Name, err)
	}
	compiled, err := g.Compile(ctx, desc, config)
	if err != nil {
		return Side{}, fmt.Errorf("%s: %w", p.Name, err)
	}
	return priceOf(compiled), nil
}

// Measure prices a program for a device and times both forms, the one after the other
// several times, so that what else runs on the machine disturbs both. The least
// counts.
func (p *Program) Measure(ctx context.Context, dev runtime.Device, config engine.Config, repeats int) (*Compared, error) {
	ready, err := p.compile(ctx, dev, config)
	if err != nil {
		return nil, err
	}
	return ready.measure(ctx, repeats)
}

// MeasureAll is Measure for each program of a list; it hands over the results in order.
// A GPU's programs are compiled ahead by the host's other cores; those of a CPU are not,
// which would take the time of what is measured.
func MeasureAll(ctx context.Context, dev runtime.Device, config engine.Config, list []Program, repeats int, take func(*Compared) error) error {
	compilers := 1
	if dev.Target().Kind == target.GPU {
		compilers = max(goruntime.GOMAXPROCS(0)-1, 1)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ahead := make(chan chan compileResult, compilers-1)
	go func() {
		defer close(ahead)
		for i := range list {
			result := make(chan compileResult, 1)
			select {
			case ahead <- result:
			case <-ctx.Done():
				return
			}
			go func() {
				ready, err := list[i].compile(ctx, dev, config)
				result <- compileResult{ready, err}
			}()
		}
	}()
	var failed error
	for result := range ahead {
		r := <-result
		if r.err == nil && failed == nil {
			r.err = measureInto(ctx, r.ready, repeats, take)
		} else if r.ready != nil {
			r.ready.close()
		}
		if r.err != nil && failed == nil {
			failed = r.err
			cancel()
		}
	}
	return failed
}

// compileResult is what a goroutine that compiles hands over.
type compileResult struct {
	ready *compiledProgram
	err   error
}

func measureInto(ctx context.Context, ready *compiledProgram, repeats int, take func(*Compared) error) error {
	c, err := ready.measure(ctx, repeats)
	if err != nil {
		return err
	}
	return take(c)
}

// compiledProgram is a program whose two forms can run.
type compiledProgram struct {
	compared      *Compared
	fused, fenced *tensor.Function
}

func (c *compiledProgram) close() {
	for _, f := range []*tensor.Function{c.fused, c.fenced} {
		if f != nil {
			f.Close()
		}
	}
}

// compile prices a program, compiles its two forms and fills their inputs.
func (p *Program) compile(ctx context.Context, dev runtime.Device, config engine.Config) (_ *compiledProgram, err error) {
	c := &compiledProgram{compared: &Compared{Name: p.Name, Size: p.Size}}
	defer func() {
		if err != nil {
			c.close()
			err = fmt.Errorf("%s: %w", p.Name, err)
		}
	}()
	if c.fused, c.compared.Fused, err = p.form(ctx, dev, config, false); err != nil {
		return nil, err
	}
	c.fenced, c.compared.Fenced, err = p.form(ctx, dev, config, true)
	return c, err
}

// form compiles one form.
func (p *Program) form(ctx context.Context, dev runtime.Device, config engine.Config, fenced bool) (*tensor.Function, Side, error) {
	g, err := p.Graph(fenced)
	if err != nil {
		return nil, Side{}, err
	}
	f, err := tensor.Compile(ctx, g, dev, config)
	if err != nil {
		return nil, Side{}, err
	}
	for _, info := range f.Buffers() {
		if err := fill(ctx, f, info); err != nil {
			f.Close()
			return nil, Side{}, err
		}
	}
	return f, priceOf(f.Step().Compiled), nil
}

// rounds is how often a program's two forms take turns.
const rounds = 4

// measure times both forms, by turns, and frees them.
func (c *compiledProgram) measure(ctx context.Context, repeats int) (*Compared, error) {
	defer c.close()
	for range rounds {
		for _, form := range []struct {
			side     *Side
			function *tensor.Function
		}{{&c.compared.Fused, c.fused}, {&c.compared.Fenced, c.fenced}} {
			seconds, err := runs(ctx, form.function, repeats)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.compared.Name, err)
			}
			if t := 1e6 * slices.Min(seconds); form.side.Time == 0 || t < form.side.Time {
				form.side.Time = t
			}
		}
	}
	return c.compared, nil
}

// longRun is how many seconds a run may take to be repeated, and how many it is
// repeated for.
const longRun = 0.05

// chained is how many runs of a GPU follow each other in one measurement.
const chained = 20

// runs times a function's runs. Where the device can chain them, the time is the device's:
// the host's part in a run and its wait, some 8 us on an H200, is the same in both forms.
func runs(ctx context.Context, f *tensor.Function, repeats int) ([]float64, error) {
	run := func() error { return f.Run(ctx, nil) }
	seconds, err := timed(ctx, 1, 1, longRun, run)
	if err != nil || slices.Min(seconds) > longRun {
		return seconds, err
	}
	if chains, err := chainsOf(ctx, f, repeats); !errors.Is(err, errors.ErrUnsupported) {
		return chains, err
	}
	return timed(ctx, repeats, moreRuns*repeats, longRun, run)
}

// chainsOf times some chains of runs: the seconds of one run in each.
func chainsOf(ctx context.Context, f *tensor.Function, repeats int) ([]float64, error) {
	var seconds []float64
	for range repeats {
		took, err := f.Step().RunChain(ctx, nil, chained)
		if err != nil {
			return nil, err
		}
		seconds = append(seconds, took.Seconds())
	}
	return seconds, nil
}
