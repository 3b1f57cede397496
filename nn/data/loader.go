package data

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"tgc/internal/lists"
	"tgc/nn"
)

// Options says how a loader cuts a dataset in batches.
type Options struct {
	Batch   int    // samples in a batch
	Shuffle bool   // the samples are in another order in each epoch
	Seed    uint32 // of these orders
	// KeepLast keeps what is left at the end of an epoch as a smaller batch; without it these
	// samples are not seen in this epoch. Training wants batches of one size.
	KeepLast bool
	Prefetch int // batches that are made ahead, at once; 0 for 2
}

// Loader cuts a dataset in batches. It may be used by several goroutines.
type Loader struct {
	dataset Dataset
	options Options
}

// NewLoader makes a loader; what is wrong with its options is an error of the first batch.
func NewLoader(d Dataset, opt Options) *Loader {
	if opt.Prefetch < 1 {
		opt.Prefetch = 2
	}
	return &Loader{dataset: d, options: opt}
}

// Check reports what is wrong with the dataset or the options.
func (l *Loader) Check() error {
	switch {
	case l == nil || l.dataset == nil:
		return errors.New("data: the loader has no dataset")
	case l.options.Batch < 1:
		return fmt.Errorf("data: batches of %d samples, want at least 1", l.options.Batch)
	case l.PerEpoch() < 1:
		return fmt.Errorf("data: a dataset of %d samples gives no batch of %d", l.dataset.Len(), l.options.Batch)
	}
	return nil
}

// Len is the number of samples.
func (l *Loader) Len() int { return l.dataset.Len() }

// PerEpoch is the number of batches in a pass over the dataset.
func (l *Loader) PerEpoch() int {
	n, size := l.dataset.Len(), max(l.options.Batch, 1)
	if l.options.KeepLast {
		n += size - 1
	}
	return n / size
}

// String says what batches depend on besides their number and the samples themselves.
func (l *Loader) String() string {
	kept := ""
	if l.options.KeepLast {
		kept = ", the last one smaller"
	}
	order := "in order"
	if l.options.Shuffle {
		order = fmt.Sprintf("shuffled with seed %d", l.options.Seed)
	}
	return fmt.Sprintf("%d samples in batches of %d%s, %s", l.dataset.Len(), l.options.Batch, kept, order)
}

// Samples are the numbers of the samples of batch n, which counts on from epoch to epoch.
func (l *Loader) Samples(n int) []int {
	epoch, place := n/l.PerEpoch(), n%l.PerEpoch()*l.options.Batch
	count := min(l.options.Batch, l.dataset.Len()-place)
	if !l.options.Shuffle {
		return lists.Make(count, func(i int) int { return place + i })
	}
	order := newOrder(uint64(l.dataset.Len()), l.options.Seed, uint32(epoch))
	return lists.Make(count, func(i int) int { return int(order.at(uint64(place + i))) })
}

// At makes batch n.
func (l *Loader) At(n int) (nn.Values, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, fmt.Errorf("data: batch %d, want 0 or more", n)
	}
	return l.dataset.Batch(l.Samples(n))
}

// made is a batch with what went wrong.
type made struct {
	batch nn.Values
	err   error
}

// start makes batch n in a goroutine; what it leaves may stay unread.
func (l *Loader) start(n int) <-chan made {
	ready := make(chan made, 1)
	go func() {
		batch, err := l.At(n)
		ready <- made{batch, err}
	}()
	return ready
}

// Batches are batches from..to-1 in order, made ahead. The first error ends them.
func (l *Loader) Batches(ctx context.Context, from, to int) iter.Seq2[nn.Values, error] {
	return func(yield func(nn.Values, error) bool) {
		if err := l.Check(); err != nil {
			yield(nil, err)
			return
		}
		var ahead []<-chan made
		for n := from; n < to; n++ {
			for len(ahead) < min(l.options.Prefetch+1, to-n) {
				ahead = append(ahead, l.start(n+len(ahead)))
			}
			var next made
			select {
			case next = <-ahead[0]:
			case <-ctx.Done():
				next.err = context.Cause(ctx)
			}
			ahead = ahead[1:]
			if !yield(next.batch, next.err) || next.err != nil {
				return
			}
		}
	}
}
