package search

import (
	"context"
	"sync"

	"tgc/engine"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/search/database"
	"tgc/target"
)

// Online searches kernels when the compiler asks for their plans (engine.Config.Plans), unless
// the database has them: TGC_BEAM. It knows no step: what is faster by itself is taken.
type Online struct {
	Search  Options // Budget is that of each kernel
	Bench   BenchOptions
	Testers Testers
	DB      *database.DB                     // may be nil
	Say     func(format string, args ...any) // may be nil

	mu    sync.Mutex
	known map[database.Key]*plan.Plan // of what was searched; nil: the heuristic's
}

// Find is that of engine.Plans. A kernel that cannot be judged keeps the heuristic's plan.
func (o *Online) Find(ctx context.Context, sink *ir.UOp, desc *target.Desc) (engine.Found, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := database.KeyOf(sink, desc)
	if p, ok := o.known[key]; ok {
		return foundOf(p), p != nil, nil
	}
	k, err := engine.LowerKernel(ir.NewArena(), sink, desc, engine.Config{})
	if err != nil {
		return engine.Found{}, false, err
	}
	if e, ok := settled(o.DB, key, k.AST, k.Plan); ok {
		return engine.Found{}, false, nil // the compiler asks the database next
	} else if e.Unproven {
		if p, err := plan.Parse(e.Plan); err == nil {
			o.Search.Extra = append(o.Search.Extra[:len(o.Search.Extra):len(o.Search.Extra)], p)
		}
	}
	p, err := o.search(ctx, Kernel{AST: k.AST, Desc: desc, Plan: k.Plan})
	if o.known == nil {
		o.known = make(map[database.Key]*plan.Plan)
	}
	o.known[key] = p
	return foundOf(p), p != nil, err
}

func foundOf(p *plan.Plan) engine.Found {
	if p == nil {
		return engine.Found{}
	}
	return engine.Found{Plan: *p, Origin: engine.FromGiven}
}

// settled says that the database has an entry of a kernel whose heuristic's plan is given, so
// that it need not be searched.
func settled(db *database.DB, key database.Key, sink *ir.UOp, heuristics plan.Plan) (e database.Entry, ok bool) {
	if db == nil {
		return e, false
	}
	e, ok, _ = db.Find(key) // what is wrong with it, the compiler says
	return e, ok && !e.Unproven && (!e.Kept || e.Plan == heuristics.String()) && database.Against(sink, e.Over, heuristics)
}

// search searches one kernel and stores what it found; nil is the heuristic's plan.
func (o *Online) search(ctx context.Context, k Kernel) (*plan.Plan, error) {
	bench := o.Bench
	bench.Baseline, bench.Records = k.Plan.String(), k.Desc.Records
	tester, err := o.Testers(ctx, k.AST, bench)
	if err != nil {
		return nil, err
	}
	defer tester.Close()
	found, err := Run(ctx, k, tester, o.Search)
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	if o.Say != nil {
		o.Say("searched a kernel: %d tried, %.4g us -> %.4g us: %s", len(found.Outcomes), found.Before.Time, found.After.Time, found.After.Plan)
	}
	if o.DB != nil && (found.Complete || len(found.Winners) > 0) {
		e, err := entryOf(ctx, k, found.Before, found.After, "by itself")
		if err == nil {
			err = o.DB.Put(e)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(found.Winners) == 0 {
		return nil, nil
	}
	p, err := plan.Parse(found.After.Plan)
	return &p, err
}

// entryOf is the entry of a kernel that was searched. Where nothing was found it says that the
// heuristic's plan is kept.
func entryOf(ctx context.Context, k Kernel, before, after Outcome, reason string) (database.Entry, error) {
	e := database.NewEntry(k.AST, k.Desc)
	e.Plan, e.Source, e.Over, e.Before, e.After, e.Reason = after.Plan, after.Source, before.Plan, before.Time, after.Time, reason
	e.Kept = after.Plan == before.Plan
	if e.Kept {
		return e, nil
	}
	p, err := plan.Parse(after.Plan)
	if err != nil {
		return e, err
	}
	e.Source, err = engine.ClassSource(ctx, k.AST, p, k.Desc)
	return e, err
}
