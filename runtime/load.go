package runtime

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"

	"tgc/internal/lists"
	"tgc/ir/program"
)

// LoadEach loads programs, each once however often it is listed, as many at once
// as there are processors. The first failure ends the others.
func LoadEach(ctx context.Context, programs []*program.Program, load func(context.Context, *program.Program) (Executable, error)) ([]Executable, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := make(map[*program.Program]int)
	var distinct []*program.Program
	for _, p := range programs {
		if _, seen := first[p]; !seen {
			first[p] = len(distinct)
			distinct = append(distinct, p)
		}
	}
	loaded, errs := make([]Executable, len(distinct)), make([]error, len(distinct))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(goruntime.GOMAXPROCS(0), len(distinct)) {
		workers.Go(func() {
			for i := range next {
				if errs[i] = ctx.Err(); errs[i] != nil {
					errs[i] = context.Cause(ctx)
				} else if loaded[i], errs[i] = load(ctx, distinct[i]); errs[i] != nil {
					cancel()
				}
			}
		})
	}
	for i := range distinct {
		next <- i
	}
	close(next)
	workers.Wait()
	if err := FirstError(errs); err != nil {
		return nil, err
	}
	out := lists.Map(programs, func(p *program.Program) Executable { return loaded[first[p]] })
	return out, nil
}

// FirstError prefers the error that made the others be cancelled.
func FirstError(errs []error) error {
	var cancelled error
	for _, err := range errs {
		switch {
		case err == nil:
		case errors.Is(err, context.Canceled):
			cancelled = err
		default:
			return err
		}
	}
	return cancelled
}
