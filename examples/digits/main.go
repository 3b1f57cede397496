// Digits trains a small convolutional network to read handwritten-looking digits
// that it draws itself, and shows where the time of a training step goes:
//
//	go run ./examples/digits
//
// With -checkpoint FILE it saves its state at the end (or at Ctrl-C) and resumes
// from the file if it exists.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"time"

	"tgc/engine"
	"tgc/nn/optim"
	"tgc/nn/train"
	"tgc/runtime"
	"tgc/runtime/devices"
	"tgc/tensor"
)

func main() {
	opt := options{out: os.Stdout, unseen: 2000}
	flag.IntVar(&opt.steps, "steps", 300, "training steps")
	flag.IntVar(&opt.batch, "batch", 64, "pictures in a step")
	flag.StringVar(&opt.device, "device", "", "device: cpu, interp, cuda; default: the best there is")
	flag.StringVar(&opt.checkpoint, "checkpoint", "", "file to save to and to resume from")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch err := run(ctx, opt); {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "interrupted")
		os.Exit(130) // as shells report SIGINT
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Pictures of different series have nothing in common.
const (
	trainingSeries = 1
	heldOutSeries  = 2
)

type options struct {
	steps, batch       int
	unseen             int // pictures that accuracy is measured on, a multiple of examBatch
	device, checkpoint string
	out                io.Writer
}

func run(ctx context.Context, opt options) error {
	config, err := engine.ReadConfig()
	if err != nil {
		return err
	}
	dev, _, err := devices.Open(ctx, opt.device, devices.Options{})
	if err != nil {
		return err
	}
	defer dev.Close()
	start := time.Now()
	trainer, err := train.New(ctx, dev, train.Options{
		Optimizer: optim.NewAdamW(0.01),
		Rate:      optim.Cosine(4e-3, 1e-4, 20, opt.steps),
		Clip:      1,
		Seed:      1,
		Config:    config,
	}, loss(opt.batch))
	if err != nil {
		return err
	}
	defer trainer.Close()
	test, err := newExam(ctx, dev, trainer, config, opt.unseen)
	if err != nil {
		return err
	}
	defer test.Close()
	fmt.Fprintf(opt.out, "%d parameters; compiled for %s in %.1f s\n", trainer.Parameters().Count(), dev.Name(), time.Since(start).Seconds())
	if err := resume(ctx, trainer, opt.checkpoint); err != nil {
		return err
	}

	err = steps(ctx, trainer, test, opt)
	if opt.checkpoint != "" { // also when interrupted, with a context of its own
		err = errors.Join(err, trainer.Save(context.WithoutCancel(ctx), opt.checkpoint))
	}
	if err != nil {
		return err
	}
	return profile(ctx, trainer, opt.out)
}

// resume goes on from a checkpoint if there is one.
func resume(ctx context.Context, trainer *train.Trainer, path string) error {
	if path == "" {
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return trainer.Resume(ctx, path)
}

// steps trains up to opt.steps and reports about ten times.
func steps(ctx context.Context, trainer *train.Trainer, test *exam, opt options) error {
	report, err := trainer.Report(ctx)
	if err != nil {
		return err
	}
	first := report.Steps
	batches := prepare(ctx, first, opt.steps, opt.batch)
	every := max(opt.steps/10, 1)
	start := time.Now()
	for n := first; n < opt.steps; n++ {
		b, ok := <-batches
		if !ok {
			return context.Cause(ctx)
		}
		if err := b.feed(ctx, trainer.Function(), learned); err != nil {
			return err
		}
		if err := trainer.Step(ctx); err != nil {
			return err
		}
		if made := n + 1; made%every != 0 && made != opt.steps {
			continue
		}
		if report, err = trainer.Report(ctx); err != nil {
			return err
		}
		accuracy, err := test.accuracy(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(opt.out, "step %4d  loss %.4f  accuracy on %d unseen pictures %.2f %%  %5.1f s\n",
			report.Steps, report.Loss, opt.unseen, 100*accuracy, time.Since(start).Seconds())
	}
	return nil
}

// batch is a step's input.
type batch struct {
	pictures []float32
	digits   []int32
}

func newBatch(series uint64, first, count int) batch {
	b := batch{make([]float32, count*size*size), make([]int32, count)}
	for i := range count {
		b.digits[i] = draw(series, uint64(first+i), b.pictures[i*size*size:][:size*size])
	}
	return b
}

func (b batch) feed(ctx context.Context, f *tensor.Function, prefix string) error {
	if err := tensor.Set(ctx, f, prefix+"pictures", b.pictures); err != nil {
		return err
	}
	return tensor.Set(ctx, f, prefix+"digits", b.digits)
}

// prepare draws the batches of steps from..to-1 while others are trained on.
// Batch n holds the same pictures in every run.
func prepare(ctx context.Context, from, to, count int) <-chan batch {
	ready := make(chan batch, 4)
	go func() {
		defer close(ready)
		for n := from; n < to; n++ {
			select {
			case ready <- newBatch(trainingSeries, n*count, count):
			case <-ctx.Done():
				return
			}
		}
	}()
	return ready
}

// examBatch is the pictures of one run of the evaluation.
const examBatch = 200

// exam measures accuracy on held-out pictures with the trainer's own weights.
type exam struct {
	*tensor.Function
	batches []batch
}

func newExam(ctx context.Context, dev runtime.Device, trainer *train.Trainer, config engine.Config, unseen int) (*exam, error) {
	f, err := tensor.Compile(ctx, hits(examBatch), dev, config, trainer.Function())
	if err != nil {
		return nil, err
	}
	e := &exam{Function: f}
	for at := 0; at < unseen; at += examBatch {
		e.batches = append(e.batches, newBatch(heldOutSeries, at, examBatch))
	}
	return e, nil
}

func (e *exam) accuracy(ctx context.Context) (float64, error) {
	total := 0
	for _, b := range e.batches {
		if err := b.feed(ctx, e.Function, unseen); err != nil {
			return 0, err
		}
		if err := e.Run(ctx, nil); err != nil {
			return 0, err
		}
		hits, err := tensor.Get[int32](ctx, e.Function, "hits")
		if err != nil {
			return 0, err
		}
		total += int(hits[0])
	}
	return float64(total) / float64(examBatch*len(e.batches)), nil
}
