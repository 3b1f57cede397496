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
	"math"
	"os"
	"os/signal"

	"tgc/internal/lists"
	"tgc/nn"
	"tgc/nn/data"
	"tgc/nn/optim"
	"tgc/nn/train"
	"tgc/runtime/devices"
)

func main() {
	opt := options{out: os.Stdout, unseen: 2000}
	flag.IntVar(&opt.steps, "steps", 300, "training steps")
	flag.IntVar(&opt.batch, "batch", 64, "pictures in a step")
	flag.StringVar(&opt.device, "device", "", "device: cpu, interp, cuda; default: the best there is")
	flag.StringVar(&opt.checkpoint, "checkpoint", "", "file to save to and to resume from")
	flag.StringVar(&opt.curve, "curve", "", "keep the loss curve as NAME.csv and NAME.svg, the profile as NAME-step.svg")
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

// curveTitle is what the picture of a run shows.
const curveTitle = "Cross entropy of digits by step"

// Pictures of different series have nothing in common.
const (
	trainingSeries = 1
	heldOutSeries  = 2
)

type options struct {
	steps, batch       int
	unseen             int // pictures that accuracy is measured on
	device, checkpoint string
	curve              string // name of the files of the loss curve and the profile, empty for none
	out                io.Writer
}

func run(ctx context.Context, opt options) error {
	dev, _, err := devices.Open(ctx, opt.device, devices.Options{})
	if err != nil {
		return err
	}
	defer dev.Close()
	var callbacks []train.Callback
	if opt.curve != "" {
		callbacks = []train.Callback{
			train.WriteCSV(opt.curve + ".csv"),
			train.WriteSVG(opt.curve+".svg", curveTitle),
		}
	}
	run, err := train.Fit(ctx, train.FitOptions{
		Options: train.Options{
			Optimizer: optim.NewAdamW(0.01),
			Rate:      optim.Cosine(4e-3, 1e-4, 20, opt.steps),
			Clip:      1,
			Seed:      1,
		},
		Device:     dev,
		Data:       data.NewLoader(pictures(trainingSeries, math.MaxInt32), data.Options{Batch: opt.batch, Prefetch: 4}),
		Valid:      data.NewLoader(pictures(heldOutSeries, opt.unseen), data.Options{Batch: 200, KeepLast: true}),
		Steps:      opt.steps,
		Every:      max(opt.steps/10, 1),
		Checkpoint: opt.checkpoint,
		Callbacks:  callbacks,
		Log:        opt.out,
	}, network)
	if err != nil {
		run.Close() // what was learned before an interruption is in the checkpoint
		return err
	}
	defer run.Close()
	profile, err := run.Profile(ctx, 20)
	if err != nil {
		return err
	}
	fmt.Fprintf(opt.out, "\n%d parameters; %s", run.Parameters().Count(), profile)
	if opt.curve == "" {
		return nil
	}
	return os.WriteFile(opt.curve+"-step.svg", profile.SVG(), 0o666)
}

// pictures are drawn when they are asked for: picture n of a series is the same in every run.
func pictures(series uint64, count int) data.Dataset {
	return data.Func{Samples: count, Make: func(samples []int) (nn.Values, error) {
		images, digits := make([]float32, len(samples)*size*size), make([]int32, len(samples))
		for i, n := range samples {
			digits[i] = draw(series, uint64(n), images[i*size*size:][:size*size])
		}
		return data.Table{data.Of("pictures", images, 1, size, size), data.Of("digits", digits)}.Batch(lists.Upto(len(samples)))
	}}
}
