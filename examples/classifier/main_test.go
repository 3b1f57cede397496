package main

import (
	"testing"

	"tgc/nn/data"
	"tgc/nn/optim"
	"tgc/nn/train"
)

func TestNetworkLearns(t *testing.T) {
	run, err := train.Fit(t.Context(), train.FitOptions{
		Options: train.Options{Optimizer: optim.NewAdamW(0.01), Rate: optim.Constant(3e-3)},
		Data:    data.NewLoader(clouds(3200, 1), data.Options{Batch: 64, Shuffle: true}),
		Valid:   data.NewLoader(clouds(500, 2), data.Options{Batch: 250}),
		Epochs:  1,
	}, network)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if last := run.History.Last(); last.Values["valid.accuracy"] < 0.95 {
		t.Errorf("%s", last)
	}
}
