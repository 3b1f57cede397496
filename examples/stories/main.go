// Stories makes a language model from nothing: it tells short stories by a
// grammar, learns a vocabulary from them, trains a small model of the LLaMA
// architecture and writes it as a GGUF file that tgc runs:
//
//	go run ./examples/stories -out stories.gguf
//	go run ./cmd/tgc run stories.gguf -p "Once upon a time"
//
// With -checkpoint FILE it saves its state now and then, at the end and at
// Ctrl-C, and resumes from the file if it exists.
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
	"tgc/ir"
	"tgc/llm/tokenizer"
	"tgc/nn"
	"tgc/nn/optim"
	"tgc/nn/train"
	"tgc/runtime"
	"tgc/runtime/devices"
	"tgc/tensor"
)

// options of a run.
type options struct {
	model                    shape
	steps, batch, length     int
	stories, unseen          int // of the training and the held-out text
	every                    int // steps between reports and checkpoints
	rate                     float64
	device, checkpoint, file string
	curve                    string // name of the loss curve's files, empty for none
	out                      io.Writer
}

func main() {
	opt := options{model: small, stories: 40000, unseen: 200, out: os.Stdout}
	flag.IntVar(&opt.steps, "steps", 3500, "training steps")
	flag.IntVar(&opt.batch, "batch", 16, "stories in a step")
	flag.IntVar(&opt.length, "length", 128, "tokens of each, with what follows a shorter one")
	flag.IntVar(&opt.every, "every", 50, "steps between reports and checkpoints")
	flag.Float64Var(&opt.rate, "rate", 3e-3, "largest learning rate")
	flag.StringVar(&opt.device, "device", "", "device: cpu, interp, cuda; default: the best there is")
	flag.StringVar(&opt.checkpoint, "checkpoint", "", "file to save to and to resume from")
	flag.StringVar(&opt.file, "out", "stories.gguf", "model file to write")
	flag.StringVar(&opt.curve, "curve", "", "keep the loss curve as NAME.csv and NAME.svg")
	tell := flag.Int("tell", 0, "only tell so many stories of the grammar")
	flag.Parse()
	for i := range *tell {
		fmt.Printf("%s\n\n", story(heldOutSeries, uint64(i)))
	}
	if *tell > 0 {
		return
	}

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

// texts is what a run trains and is tested on.
type texts struct {
	vocabulary       *tokenizer.Vocabulary
	learned, heldOut []int32
}

func prepare(opt options) (*texts, error) {
	v, err := vocabulary(min(opt.stories, 4000), opt.model.vocabulary)
	if err != nil {
		return nil, err
	}
	tok, err := tokenizer.New(v)
	if err != nil {
		return nil, err
	}
	t := &texts{vocabulary: v}
	if t.learned, err = corpus(tok, trainingSeries, opt.stories); err != nil {
		return nil, err
	}
	t.heldOut, err = corpus(tok, heldOutSeries, opt.unseen)
	return t, err
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
	data, err := prepare(opt)
	if err != nil {
		return err
	}
	fmt.Fprintf(opt.out, "%d stories, %d tokens; %d tokens of unseen ones\n", opt.stories, len(data.learned), len(data.heldOut))
	start := time.Now()
	optimizer := optim.NewAdamW(0.05)
	optimizer.Beta2 = 0.98
	trainer, err := train.New(ctx, dev, train.Options{
		Optimizer: optimizer,
		Rate:      optim.Cosine(opt.rate, opt.rate/20, min(100, opt.steps/4), opt.steps),
		Clip:      1,
		Seed:      1,
		Config:    config,
	}, func(p *nn.Parameters) *tensor.Tensor {
		return newTransformer(p, opt.model).loss(p.Graph(), "text", opt.batch, opt.length)
	})
	if err != nil {
		return err
	}
	defer trainer.Close()
	test, err := newExam(ctx, dev, trainer, config, opt, data)
	if err != nil {
		return err
	}
	defer test.Close()
	fmt.Fprintf(opt.out, "%d parameters; compiled for %s in %.1f s\n", trainer.Parameters().Count(), dev.Name(), time.Since(start).Seconds())

	err = teach(ctx, trainer, test, opt, data)
	if opt.checkpoint != "" { // also when interrupted, with a context of its own
		err = errors.Join(err, trainer.Save(context.WithoutCancel(ctx), opt.checkpoint))
	}
	if err != nil {
		return err
	}
	values, err := trainer.Values(ctx)
	if err != nil {
		return err
	}
	return export(ctx, opt.file, opt.model, data.vocabulary, values, trainer.Parameters())
}

// teach trains up to opt.steps.
func teach(ctx context.Context, trainer *train.Trainer, test *exam, opt options, data *texts) error {
	if opt.checkpoint != "" {
		if err := trainer.Resume(ctx, opt.checkpoint); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	report, err := trainer.Report(ctx)
	if err != nil {
		return err
	}
	course, err := readCurve(opt.curve, report.Steps)
	if err != nil {
		return err
	}
	start, first := time.Now(), report.Steps
	for n := first; n < opt.steps; n++ {
		if err := tensor.Set(ctx, trainer.Function(), "text", windows(data.learned, n, opt.batch, opt.length)); err != nil {
			return err
		}
		if err := trainer.Step(ctx); err != nil {
			return err
		}
		if made := n + 1; made%opt.every != 0 && made != opt.steps {
			continue
		}
		if report, err = trainer.Report(ctx); err != nil {
			return err
		}
		unseen, err := test.loss(ctx)
		if err != nil {
			return err
		}
		each := time.Since(start) / time.Duration(n+1-first)
		fmt.Fprintf(opt.out, "step %5d  loss %.3f  unseen %.3f  %v a step, %v to go\n", report.Steps, report.Loss, unseen,
			each.Round(time.Millisecond), (each * time.Duration(opt.steps-n-1)).Round(time.Second))
		if err := course.add(point{report.Steps, report.Loss, unseen}); err != nil {
			return err
		}
		if opt.checkpoint != "" {
			if err := trainer.Save(ctx, opt.checkpoint); err != nil {
				return err
			}
		}
	}
	return nil
}

// exam measures the loss on held-out stories with the trainer's own weights.
type exam struct {
	*tensor.Function
	batches [][]int32
}

// examBatch is the pieces of text of one run of the evaluation.
const examBatch = 8

func newExam(ctx context.Context, dev runtime.Device, trainer *train.Trainer, config engine.Config, opt options, data *texts) (*exam, error) {
	g := tensor.NewGraph()
	loss := newTransformer(nn.NewParameters(g), opt.model).loss(g, "exam.text", examBatch, opt.length)
	g.Output("exam.loss", loss.Cast(ir.F32).Reshape(1))
	f, err := tensor.Compile(ctx, g, dev, config, trainer.Function())
	if err != nil {
		return nil, err
	}
	e := &exam{Function: f}
	for n := range 4 {
		e.batches = append(e.batches, windows(data.heldOut, n, examBatch, opt.length))
	}
	return e, nil
}

// loss is the mean over the batches.
func (e *exam) loss(ctx context.Context) (float64, error) {
	sum := 0.0
	for _, b := range e.batches {
		if err := tensor.Set(ctx, e.Function, "exam.text", b); err != nil {
			return 0, err
		}
		if err := e.Run(ctx, nil); err != nil {
			return 0, err
		}
		loss, err := tensor.Get[float32](ctx, e.Function, "exam.loss")
		if err != nil {
			return 0, err
		}
		sum += float64(loss[0])
	}
	return sum / float64(len(e.batches)), nil
}
