package nvidia

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"tgc/internal/cachefile"
	"tgc/ir/program"
	"tgc/runtime"
	"tgc/target"
)

// Stats are figures of a kernel's machine code.
type Stats = runtime.Stats

// Render renders a program whose tables lie in its text.
func Render(p *program.Program, desc *target.Desc, by Renderer) (*Rendered, error) {
	rendered, err := by(p, desc)
	if err != nil {
		return nil, err
	}
	for _, i := range rendered.Params {
		if p.Params[i].Kind == program.ParamTable {
			return nil, fmt.Errorf("kernel %s: a table as parameter %d, want it in the text", p.Name, i)
		}
	}
	return rendered, nil
}

// Loader makes of texts what a device runs (C), each text once however many ask
// for it, and once for all processes that share the cache of machine code.
type Loader[C any] struct {
	Cache *cachefile.Cache // nil: none
	// Assemble makes machine code of a text; log is what the assembler said.
	Assemble func(ctx context.Context, r *Rendered) (cubin []byte, log string, err error)
	// Make makes of machine code what the device runs.
	Make func(cubin []byte, r *Rendered) (C, error)

	mu     sync.Mutex
	loaded map[string]*pending[C]
}

// pending is machine code that somebody is making or has made.
type pending[C any] struct {
	done chan struct{} // closed when the rest is set
	code C
	err  error
}

// Load loads the machine code of a text; compiler names all that it depends on but
// the text.
func (l *Loader[C]) Load(ctx context.Context, compiler string, r *Rendered) (C, error) {
	key := strings.Join([]string{compiler, r.Entry, r.Text}, "\n")
	for {
		l.mu.Lock()
		p := l.loaded[key]
		if p == nil {
			p = &pending[C]{done: make(chan struct{})}
			if l.loaded == nil {
				l.loaded = make(map[string]*pending[C])
			}
			l.loaded[key] = p
			l.mu.Unlock()
			l.settle(ctx, key, p, r)
			return p.code, p.err
		}
		l.mu.Unlock()
		select {
		case <-p.done:
		case <-ctx.Done():
			var none C
			return none, context.Cause(ctx)
		}
		if !errors.Is(p.err, context.Canceled) {
			return p.code, p.err
		} // who made it gave up, not this caller
	}
}

// All is everything that was loaded. Nothing may be loading.
func (l *Loader[C]) All() []C {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []C
	for _, p := range l.loaded {
		all = append(all, p.code)
	}
	return all
}

// settle makes the code of a pending entry. A failure does not stay.
func (l *Loader[C]) settle(ctx context.Context, key string, p *pending[C], r *Rendered) {
	defer close(p.done)
	if p.code, p.err = l.assemble(ctx, key, r); p.err != nil {
		l.mu.Lock()
		delete(l.loaded, key)
		l.mu.Unlock()
	}
}

// assemble takes the machine code of a text from the cache or the assembler.
func (l *Loader[C]) assemble(ctx context.Context, key string, r *Rendered) (C, error) {
	var none C
	if cubin, hit := l.Cache.Get(key); hit {
		if c, err := l.Make(cubin, r); err == nil {
			return c, nil
		} // machine code that does not load is assembled again
	}
	cubin, log, err := l.Assemble(ctx, r)
	if err != nil {
		return none, AssemblyError(err, log)
	}
	c, err := l.Make(cubin, r)
	if err != nil {
		return none, AssemblyError(err, log)
	}
	_ = l.Cache.Put(key, cubin) // a full or read-only cache is no failure
	return c, nil
}

// AssemblyError adds what the assembler said.
func AssemblyError(err error, log string) error {
	if log = strings.TrimSpace(log); log == "" {
		return err
	}
	return fmt.Errorf("%w\n%s", err, log)
}
