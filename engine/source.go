package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/pass"
	"tgc/render"
	"tgc/search/database"
	"tgc/target"
)

// Origin says where a kernel's plan comes from.
type Origin string

// The origins, as manifest.json spells them.
const (
	FromHeuristic Origin = "heuristic"
	FromGiven     Origin = "given" // by Config.Plans
	FromDatabase  Origin = "database"
)

// Found is a plan that is not the heuristic's.
type Found struct {
	Plan   plan.Plan
	Source string // hash of the source that it must give, as SourceHash or ClassSource makes it; empty: any
	Over   string // the heuristic's plan that it is better than; empty: any
	Origin Origin
}

// Plans knows plans of kernels. An error is a warning: the heuristic's plan is taken then.
type Plans interface {
	Find(ctx context.Context, sink *ir.UOp, desc *target.Desc) (found Found, ok bool, err error)
}

// ProgramName is that of programs whose source is compared: in a step, names tell kernels
// apart.
const ProgramName = "kernel"

// Source is what a target's renderer prints of a program, under ProgramName.
func Source(p *program.Program, desc *target.Desc) (string, error) {
	r, err := render.For(desc)
	if err != nil {
		return "", err
	}
	named := *p
	named.Name = ProgramName
	return r.Source(&named)
}

// SourceHash is that of a source.
func SourceHash(source string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(source)))[:24] }

// databasePlans are those of a database.
type databasePlans struct{ *database.DB }

// Find returns the entry of a kernel that a search on this target has stored.
func (d databasePlans) Find(_ context.Context, sink *ir.UOp, desc *target.Desc) (Found, bool, error) {
	e, ok, err := d.DB.Find(database.KeyOf(sink, desc))
	if err != nil || !ok || e.Unproven || e.Kept {
		return Found{}, false, err
	}
	p, err := plan.Parse(e.Plan)
	return Found{p, e.Source, e.Over, FromDatabase}, err == nil, err
}

// plans are where plans come from before the heuristics, the first before the others. Opts
// that are added to all plans, and what overrides the heuristics, are there to be seen: then no
// database says otherwise.
func (c *Config) plans() (list []Plans) {
	if c.Plans != nil {
		list = append(list, c.Plans)
	}
	knobs := c.Knobs
	if c.DB != "" && !c.IgnoreDB && len(c.With) == 0 && knobs == (Config{}).Knobs {
		list = append(list, databasePlans{database.Open(c.DB)})
	}
	return list
}

// warn tells the user.
func (c *Config) warn(format string, args ...any) {
	if c.Warn != nil {
		c.Warn(fmt.Sprintf(format, args...))
	}
}

// findPlans takes the plans that are known of kernels instead of the heuristics'.
func findPlans(ctx context.Context, s *state) error {
	list := s.config.plans()
	if len(list) == 0 {
		return nil
	}
	return eachKernel(ctx, s, func(k *Kernel) error {
		for _, plans := range list {
			found, ok, err := plans.Find(ctx, k.AST, s.out.Target)
			if err != nil {
				s.config.warn("kernel %s: %v", k.Name, err)
			}
			if ok && database.Against(k.AST, found.Over, k.Plan) {
				k.Plan, k.Origin, k.found = found.Plan, found.Origin, &found
				k.Why = fmt.Sprintf("%s, instead of: %s", found.Origin, k.Why)
				break
			}
		}
		return ctx.Err()
	})
}

// errChanged is why a plan is not used.
var errChanged = errors.New("the plan gives another source than when it was timed")

// lowerFound lowers a kernel with a plan that was found. One that is refused, or gives another
// source than it must, is dropped for the heuristic's with a warning.
func (k *Kernel) lowerFound(ctx context.Context, s *state) (done bool, err error) {
	k.Program, err = kernel.LowerWith(ctx, s.out.arena, k.AST, k.Plan, s.out.Target, k.Name, s.control)
	if err == nil && k.found.Source != "" {
		err = k.sameSource(ctx, s)
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, pass.ErrStopped), ctx.Err() != nil:
		return true, err
	}
	s.config.warn("kernel %s: plan %q (%s) is not used: %v", k.Name, k.Plan, k.Origin, err)
	k.take(s, k.choice)
	k.found = nil
	return false, nil
}

// sameSource says that a plan gives the source that it gave when it was timed: that of the kernel,
// or that of its class.
func (k *Kernel) sameSource(ctx context.Context, s *state) error {
	source, err := Source(k.Program, s.out.Target)
	if err != nil || SourceHash(source) == k.found.Source {
		return err
	}
	hash, err := ClassSource(ctx, k.AST, k.Plan, s.out.Target)
	if err == nil && hash != k.found.Source {
		err = errChanged
	}
	return err
}

// ClassSource is the hash of the source that a plan gives the largest kernel of a kernel's class
// (ir.Class). It says whether a compiler still makes of a plan what it made when the plan was
// timed, whatever the size of the cache was then.
func ClassSource(ctx context.Context, ast *ir.UOp, p plan.Plan, desc *target.Desc) (string, error) {
	a := ir.NewArena()
	program, err := kernel.LowerWith(ctx, a, a.Import(ir.Class(a, ast)), p, desc, ProgramName, nil)
	if err != nil {
		return "", err
	}
	source, err := Source(program, desc)
	return SourceHash(source), err
}

// origin is that of a kernel, or of the parts of one.
func (k *Kernel) origin() Origin {
	var list []string
	for _, part := range k.Parts {
		list = lists.Union(list, string(part.Origin))
	}
	if list == nil {
		return k.Origin
	}
	return Origin(strings.Join(list, "+"))
}
