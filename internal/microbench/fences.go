package microbench

import (
	"context"
	"sync"

	"tgc/engine"
	"tgc/target"
)

// Fences prices programs of two ops whose fenced forms share their halves: between fences
// an op costs the same whatever it is paired with, so that each is compiled once, not once
// for every program that has it.
type Fences struct {
	Target *target.Desc
	Config engine.Config

	mu     sync.Mutex
	prices map[half]func() (float64, error)
}

// half is an op of a fenced program: the first, or one that reads what another one stored.
type half struct {
	op    *everydayOp
	size  int
	first bool
}

// Price is Program.Price for one of Pairs; of the fenced side it has the price alone.
func (f *Fences) Price(ctx context.Context, p *Program) (*Compared, error) {
	fused, err := p.side(ctx, f.Target, f.Config, false)
	if err != nil {
		return nil, err
	}
	c := &Compared{Name: p.Name, Size: p.Size, Fused: fused}
	for i, s := range p.steps {
		price, err := f.price(ctx, half{s.op, p.Size, i == 0})
		if err != nil {
			return nil, err
		}
		c.Fenced.Price += price
	}
	return c, nil
}

// price is that of a half. The second op of a program reads a value that a kernel has
// written, which no op alone does: it costs what it adds to another one.
func (f *Fences) price(ctx context.Context, h half) (float64, error) {
	f.mu.Lock()
	if f.prices == nil {
		f.prices = make(map[half]func() (float64, error))
	}
	price := f.prices[h]
	if price == nil {
		price = sync.OnceValues(func() (float64, error) { return f.compile(ctx, h) })
		f.prices[h] = price
	}
	f.mu.Unlock()
	return price()
}

func (f *Fences) compile(ctx context.Context, h half) (float64, error) {
	p := Program{Name: h.op.name, Size: h.size, steps: []programStep{{h.op, 0, -1}}}
	before := 0.0
	if !h.first {
		other := half{&everyday[0], h.size, true}
		var err error
		if before, err = f.price(ctx, other); err != nil {
			return 0, err
		}
		p.steps = []programStep{{other.op, 0, -1}, {h.op, 1, -1}}
	}
	side, err := p.side(ctx, f.Target, f.Config, true)
	return side.Price - before, err
}
