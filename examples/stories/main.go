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
	"math"
	"os"
	"os/signal"

	"tgc/llm/tokenizer"
	"tgc/nn"
	"tgc/nn/data"
	"tgc/nn/optim"
	"tgc/nn/train"
	"tgc/runtime"
	"tgc/runtime/devices"
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
	dev, _, err := devices.Open(ctx, opt.device, devices.Options{})
	if err != nil {
		return err
	}
	defer dev.Close()
	text, err := prepare(opt)
	if err != nil {
		return err
	}
	fmt.Fprintf(opt.out, "%d stories, %d tokens; %d tokens of unseen ones\n", opt.stories, len(text.learned), len(text.heldOut))
	run, err := teach(ctx, dev, opt, text)
	if err != nil {
		run.Close() // what was learned before an interruption is in the checkpoint
		return err
	}
	defer run.Close()
	weights, err := run.Weights(ctx)
	if err != nil {
		return err
	}
	return export(ctx, opt.file, opt.model, text.vocabulary, weights, run.Parameters())
}

// teach trains up to opt.steps.
func teach(ctx context.Context, dev runtime.Device, opt options, text *texts) (*train.Run, error) {
	optimizer := optim.NewAdamW(0.05)
	optimizer.Beta2 = 0.98
	var callbacks []train.Callback
	if opt.curve != "" {
		callbacks = []train.Callback{train.WriteCSV(opt.curve + ".csv"), train.WriteSVG(opt.curve+".svg", curveTitle)}
	}
	return train.Fit(ctx, train.FitOptions{
		Options: train.Options{
			Optimizer: optimizer,
			Rate:      optim.Cosine(opt.rate, opt.rate/20, min(100, opt.steps/4), opt.steps),
			Clip:      1,
			Seed:      1,
		},
		Device:     dev,
		Data:       data.NewLoader(windows(text.learned, opt.length, opt.batch, math.MaxInt32), data.Options{Batch: opt.batch}),
		Valid:      data.NewLoader(windows(text.heldOut, opt.length, examBatch, examBatches), data.Options{Batch: examBatch}),
		Steps:      opt.steps,
		Every:      opt.every,
		Checkpoint: opt.checkpoint,
		Callbacks:  callbacks,
		Log:        opt.out,
	}, func(p *nn.Parameters, in train.Inputs) train.Outputs {
		return train.Outputs{Loss: newTransformer(p, opt.model).loss(in.Get("text"))}
	})
}

// curveTitle is what the picture of a run shows.
const curveTitle = "Loss in nats a token by step"

// Validation takes so many batches of so many pieces of unseen text.
const examBatches, examBatch = 4, 8
