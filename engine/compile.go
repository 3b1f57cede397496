package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"tgc/heuristic"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/pass"
	"tgc/schedule"
	"tgc/target"
)

// Compiled is a graph compiled for a target: which kernels exist, in which
// launches they run, on which buffers. It depends on the graph, the target and
// the Config alone.
type Compiled struct {
	Target    *target.Desc
	Schedule  *schedule.Schedule
	Kernels   []*Kernel // unique, in order of first use
	Launches  [][]Call
	Decisions []Decision       // of the schedule, that some rule has asked for
	Passes    []pass.Time      // that ran, with their times
	Fired     map[string]int   // how often each pass changed its form, if Config.Control traces
	Names     map[int64]string // of the user's buffers, for messages; may be nil
	Larger    map[string]int64 // variables that a run may make larger, and up to what; may be nil
	// Variables are the symbolic ones that every run gives values to, within their bounds.
	Variables []ir.VarArg
	sink      *ir.UOp // the tensor graph
	arena     *ir.Arena
	finite    Watch
	steps     Steps
	apart     unmerged
}

// unmerged are the kernels and launches of a compiled graph before merge-launches.
type unmerged struct {
	kernels  []*Kernel
	launches [][]Call
}

// Kernel is one unique kernel with all its forms.
type Kernel struct {
	Name    string
	AST     *ir.UOp // kernel form, canonical
	Plan    plan.Plan
	Why     string // of the heuristic that was applied
	Records []heuristic.Record
	Program *program.Program
	Parts   []*Kernel // of a merged launch (rule R7), each with its own plan; else none
	Origin  Origin    // of the plan
	choice  heuristic.Choice
	origins ir.Origins // of the nodes of AST; nil where nothing is traced
	found   *Found     // nil: the plan is the heuristic's
}

// Price is what the kernel's plan was expected to cost when it was chosen, in
// nanoseconds on a share of the device; 0 where it was not chosen by its price.
func (k *Kernel) Price() (ns, share float64) { return k.choice.Price, k.choice.Share }

// Call is a kernel with its buffers: slot -> index into Schedule.Buffers.
type Call struct {
	Kernel *Kernel
	Args   []int
}

// state is what the stages hand on.
type state struct {
	config  *Config
	control *pass.Control
	sink    *ir.UOp
	out     *Compiled
}

// Compile runs the pipeline on the results of a tensor graph. Where
// Config.Control asks to stop after a pass the error is pass.ErrStopped.
func Compile(ctx context.Context, sink *ir.UOp, desc *target.Desc, config Config) (c *Compiled, err error) {
	s := &state{
		config: &config, control: config.control(),
		out: &Compiled{Target: forWeights(sink, desc, &config), arena: ir.NewArena(), finite: config.Finite, steps: config.Steps},
	}
	s.sink = s.out.arena.Import(sink)
	s.out.sink, s.out.Variables = s.sink, variablesOf(s.sink)
	if s.control.Origins {
		s.out.arena.Trace(s.sink)
	}
	for i := range stages {
		if err := runStage(ctx, &stages[i], s); err != nil {
			return nil, err
		}
	}
	s.out.Passes, s.out.Fired = s.control.Times(passes), s.control.Firings()
	if config.Debug > 0 {
		if err := s.out.explainDebug(ctx, os.Stderr, config.Debug); err != nil {
			return nil, fmt.Errorf("TGC_DEBUG=%d: %w", config.Debug, err)
		}
	}
	return s.out, nil
}

// Replan is c with plans chosen anew, as config says: the schedule stays. What its buffers are
// bound to fits the result too.
func (c *Compiled) Replan(ctx context.Context, config Config) (*Compiled, error) {
	s := c.again(&config)
	for i := range stages {
		if stages[i].rows[0].From == pass.Tensor {
			continue
		}
		if err := runStage(ctx, &stages[i], s); err != nil {
			return nil, err
		}
	}
	return s.out, nil
}

// again begins to compile the schedule of c once more.
func (c *Compiled) again(config *Config) *state {
	return &state{
		config: config, control: config.control(),
		sink: c.sink,
		out: &Compiled{
			Target: c.Target, Schedule: c.Schedule, Decisions: c.Decisions, Names: c.Names, Larger: c.Larger, Variables: c.Variables,
			sink: c.sink, arena: c.arena, finite: config.Finite, steps: config.Steps,
		},
	}
}

// Exchange is c with the plans that config has of some kernels. All others keep theirs, and their programs:
// it takes no longer than to lower what changes.
func (c *Compiled) Exchange(ctx context.Context, config Config) (*Compiled, error) {
	s := c.again(&config)
	had := make(map[*Kernel]*Found)
	copies := make(map[*Kernel]*Kernel)
	for _, k := range c.apart.kernels {
		other := *k
		copies[k], had[&other] = &other, k.found
		s.out.Kernels = append(s.out.Kernels, &other)
	}
	for _, calls := range c.apart.launches {
		s.out.Launches = append(s.out.Launches, lists.Map(calls, func(call Call) Call { return Call{copies[call.Kernel], call.Args} }))
	}
	if err := findPlans(ctx, s); err != nil {
		return nil, err
	}
	err := eachKernel(ctx, s, func(k *Kernel) error {
		if k.found == had[k] {
			return nil
		}
		return k.lower(ctx, s)
	})
	if err != nil {
		return nil, err
	}
	return s.out, runStage(ctx, &stages[len(stages)-1], s)
}

// ScheduleWith is the schedule that c has as config says: which kernels there would be.
func (c *Compiled) ScheduleWith(ctx context.Context, config Config) (*schedule.Schedule, error) {
	s := &state{config: &config, control: config.control(), out: &Compiled{Target: c.Target, arena: ir.NewArena()}}
	s.sink = s.out.arena.Import(c.sink)
	for i := range stages {
		if stages[i].rows[0].From != pass.Tensor {
			break
		}
		if err := runStage(ctx, &stages[i], s); err != nil {
			return nil, err
		}
	}
	return s.out.Schedule, nil
}

// Reschedule is c compiled anew, as config says. What its buffers are bound to fits the result too.
func (c *Compiled) Reschedule(ctx context.Context, config Config) (*Compiled, error) {
	out, err := Compile(ctx, c.sink, c.Target, config)
	if err != nil {
		return nil, err
	}
	out.Names, out.Larger = c.Names, c.Larger
	return out, nil
}

// BugError is a broken invariant of the compiler.
type BugError struct {
	Pass  string
	Cause any
	Graph string // the tensor graph in text form: the reproducer
}

// Error names the pass and, if the compiler itself noticed, the invariant. The
// text of a Go run-time error says nothing to a user: it stays in Cause.
func (e *BugError) Error() string {
	if _, raw := e.Cause.(runtime.Error); raw {
		return fmt.Sprintf("compiler bug in pass %s: please report it with the graph (TGC_DEBUG=1 shows the stack)", e.Pass)
	}
	return fmt.Sprintf("compiler bug in pass %s: %v: please report it with the graph", e.Pass, e.Cause)
}

// runStage runs one stage and turns a panic into a BugError.
func runStage(ctx context.Context, st *stage, s *state) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			if s.config.Debug > 0 {
				panic(cause)
			}
			var text strings.Builder
			_ = ir.Print(&text, s.sink)
			err = &BugError{Pass: s.control.Running(), Cause: cause, Graph: text.String()}
		}
	}()
	return st.run(ctx, s)
}

func verifyGraph(_ context.Context, s *state) error {
	if isKernel(s.sink) {
		return ir.VerifyKernel(s.sink)
	}
	return ir.VerifyTensor(s.sink)
}

func runSchedule(ctx context.Context, s *state) error {
	if isKernel(s.sink) {
		s.out.Schedule = scheduleOfKernel(s.sink)
		return nil
	}
	opt := schedule.OptionsFor(s.out.Target)
	opt.Off = opt.Off.With(s.config.Rules.List()...)
	if s.config.Knobs.NoMatrices {
		opt.Profile.FloatTiles = 0
	}
	opt.Explain, opt.Control = s.config.Explain, s.control
	opt.Decisions = s.config.decisions(s.out.Target)
	kept := s.config.Schedules
	if s.config.Debug > 0 { // which prints records
		kept = nil
	}
	key := kept.keyOf(s.sink, &opt)
	result, ok := kept.get(s.out.arena, key)
	if !ok {
		var err error
		if result, err = schedule.Run(ctx, s.out.arena, s.sink, opt); err != nil {
			return err
		}
		kept.put(key, result)
	}
	s.out.Schedule = result
	s.out.Decisions = usedDecisions(result.Decisions, s.config.Decide)
	if s.config.RecordsBy != nil {
		s.out.Decisions = append(s.out.Decisions, *s.config.RecordsBy)
	}
	return nil
}

// canonical is a kernel with canonical names, and the slot that each of its slots was.
type canonical struct {
	ast   *ir.UOp
	slots []int
}

// uniqueKernels renames every kernel canonically, those that are one node already once (a schedule that was kept has those of
// all layers as one); those that come out as the same node are one kernel.
func uniqueKernels(_ context.Context, s *state) error {
	known := make(map[*ir.UOp]*Kernel)
	renamed := make(map[*ir.UOp]canonical)
	names := make(map[string]int)
	for _, launch := range s.out.Schedule.Launches {
		var calls []Call
		for _, k := range launch.Kernels {
			s.out.arena.TakeOrigins(k.Origins)
			c, ok := renamed[k.AST]
			if !ok {
				c.ast, c.slots = ir.Canonicalise(s.out.arena, k.AST)
				renamed[k.AST] = c
			}
			unique, ok := known[c.ast]
			if !ok {
				unique = &Kernel{Name: uniqueName(names, k.Name), AST: c.ast, origins: s.out.arena.OriginsUnder(c.ast)}
				known[c.ast] = unique
				s.out.Kernels = append(s.out.Kernels, unique)
			}
			args := lists.Map(c.slots, func(old int) int { return k.Args[old] })
			calls = append(calls, Call{Kernel: unique, Args: args})
		}
		s.out.Launches = append(s.out.Launches, calls)
	}
	return nil
}

func uniqueName(names map[string]int, name string) string {
	names[name]++
	if n := names[name]; n > 1 {
		return fmt.Sprintf("%s_%d", name, n)
	}
	return name
}

func (k *Kernel) plan(s *state) error {
	_, err := k.choose(s, s.config.Knobs)
	return err
}

func (k *Kernel) choose(s *state, knobs heuristic.Knobs) (heuristic.Choice, error) {
	choice, err := heuristic.Choose(s.out.arena, k.AST, s.out.Target, knobs)
	k.take(s, choice)
	return choice, err
}

func (k *Kernel) take(s *state, choice heuristic.Choice) {
	k.Plan = choice.Plan.Extend(k.AST, s.config.With, s.out.Target)
	k.Why, k.Records, k.choice, k.Origin = choice.Why, choice.Records, choice, FromHeuristic
}

func lowerKernels(ctx context.Context, s *state) error {
	return eachKernel(ctx, s, func(k *Kernel) error {
		s.out.arena.TakeOrigins(k.origins)
		return k.lower(ctx, s)
	})
}

// lower turns the planned kernel into a program. A plan that lowering refuses is
// dropped for that of the next heuristic, at last for the empty one, which every
// kernel has; the reasons are kept in the records.
func (k *Kernel) lower(ctx context.Context, s *state) error {
	if k.found != nil {
		if done, err := k.lowerFound(ctx, s); done {
			return err
		}
	}
	for {
		var err error
		k.Program, err = kernel.LowerWith(ctx, s.out.arena, k.AST, k.Plan, s.out.Target, k.Name, s.control)
		var broken *pass.FormError
		if err == nil || errors.Is(err, pass.ErrStopped) || errors.As(err, &broken) || ctx.Err() != nil || len(k.Plan.Opts) == 0 {
			return err
		}
		next, none := heuristic.ChooseNext(s.out.arena, k.AST, s.out.Target, s.config.Knobs, k.choice, err)
		if none != nil {
			return err
		}
		k.take(s, next)
	}
}

// LowerKernel plans and lowers one kernel by itself: the passes after schedule.
func LowerKernel(a *ir.Arena, ast *ir.UOp, desc *target.Desc, config Config) (*Kernel, error) {
	s := &state{config: &config, control: config.control(), out: &Compiled{Target: forWeights(ast, desc, &config), arena: a}}
	k := &Kernel{Name: "kernel", AST: a.Import(ast)}
	if err := k.plan(s); err != nil {
		return nil, err
	}
	return k, k.lower(context.Background(), s)
}

// Programs lists the programs of the unique kernels.
func (c *Compiled) Programs() []*program.Program {
	return lists.Map(c.Kernels, func(k *Kernel) *program.Program { return k.Program })
}
