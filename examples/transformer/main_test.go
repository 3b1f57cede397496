package main

import (
	"math"
	"slices"
	"testing"

	"tgc/nn/data"
	"tgc/nn/optim"
	"tgc/nn/train"
	"tgc/runtime/devices"
)

func TestSequences(t *testing.T) {
	batch, err := sequences(200, 1).Batch([]int{0, 50, 199})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		var own []byte
		for k := range length {
			own = append(own, batch["ids"].Data[4*(i*length+k)])
		}
		three, seven := slices.Index(own, 3), slices.Index(own, 7)
		want := three >= 0 && (seven < 0 || three < seven)
		if got := batch["before"].Data[4*i] == 1; got != want || slices.Max(own) >= tokens {
			t.Errorf("sequence %v: %v, want %v", own, got, want)
		}
	}
}

// A few steps of the whole model lower the loss.
func TestNetworkTrains(t *testing.T) {
	run, err := train.Fit(t.Context(), train.FitOptions{
		Options: train.Options{Optimizer: optim.NewAdamW(0.01), Rate: optim.Constant(1e-3), Clip: 1},
		Data:    data.NewLoader(sequences(640, 1), data.Options{Batch: 16, Shuffle: true}),
		Steps:   40, Every: 10,
	}, network)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if _, losses := run.History.Series("loss"); losses[3] > losses[0] || losses[3] > 0.69 {
		t.Errorf("losses %v", losses)
	}
}

// A step on a GPU, an emulated one, which says so when a thread reads what none has written, is
// that of the best device here.
func TestStepOnEmulatedGPU(t *testing.T) {
	var first train.Record
	for _, name := range []string{"", "cuda:emu"} {
		dev, _, err := devices.Open(t.Context(), name, devices.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		run, err := train.Fit(t.Context(), train.FitOptions{
			Options: train.Options{Optimizer: optim.NewAdamW(0.01), Rate: optim.Constant(1e-3), Clip: 1},
			Device:  dev,
			Data:    data.NewLoader(sequences(1, 1), data.Options{Batch: 1}),
			Steps:   1, Every: 1,
		}, network)
		if err != nil {
			t.Fatal(err)
		}
		defer run.Close()
		got := run.History.Last()
		if first.Values == nil {
			first = got
		}
		for _, value := range []string{"loss", "norm"} {
			if x, want := got.Values[value], first.Values[value]; !(math.Abs(x-want) <= 1e-4*want) {
				t.Errorf("on %s: %s %v, want %v", dev.Name(), value, x, want)
			}
		}
	}
}
