// Transformer trains a small encoder to say whether the first 3 of a sequence comes before
// its first 7. The same in PyTorch stands beside it in transformer.py. With -checkpoint FILE it
// saves its state at each record, and goes on from the file if it exists.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"slices"

	"tgc/nn"
	"tgc/nn/data"
	"tgc/nn/layer"
	"tgc/nn/optim"
	"tgc/nn/train"
)

const tokens, length, width = 16, 32, 64

// sequences draws tokens.
func sequences(samples int, seed uint32) data.Dataset {
	drawn := nn.Uniform(0, tokens).Fill(seed, "tokens", []int{samples, length})
	ids, before := make([]int32, samples*length), make([]int32, samples)
	for i, x := range drawn {
		ids[i] = int32(x)
	}
	for i := range before {
		own := ids[i*length:][:length]
		three, seven := slices.Index(own, 3), slices.Index(own, 7)
		if three >= 0 && (seven < 0 || three < seven) {
			before[i] = 1
		}
	}
	return data.Table{data.Of("ids", ids, length), data.Of("before", before)}
}

func network(p *nn.Parameters, in train.Inputs) train.Outputs {
	x := layer.NewEmbedding(p.In("tokens"), tokens, width, 0.02).Forward(in.Get("ids"))
	x = layer.NewPositions(p.In("positions"), length, width).Forward(x)
	block := layer.BlockOptions{AttentionOptions: layer.AttentionOptions{Width: width, Heads: 4, Bias: true}}
	x = layer.NewEncoder(p.In("encoder"), 2, block).Forward(x, nil)
	return train.Classification(layer.NewLinear(p.In("out"), width, 2).Forward(x.Mean(1)), in.Get("before"))
}

func main() {
	steps := flag.Int("steps", 1000, "training steps")
	curve := flag.String("curve", "", "keep the loss curve as NAME.csv and NAME.svg")
	checkpoint := flag.String("checkpoint", "", "file to save to and to go on from")
	flag.Parse()
	var callbacks []train.Callback
	if *curve != "" {
		callbacks = []train.Callback{train.WriteCSV(*curve + ".csv"), train.WriteSVG(*curve+".svg", "Cross entropy by step")}
	}
	run, err := train.Fit(context.Background(), train.FitOptions{
		Options: train.Options{Optimizer: optim.NewAdamW(0.01), Rate: optim.OneCycle(3e-3, *steps), Clip: 1},
		Data:    data.NewLoader(sequences(12800, 1), data.Options{Batch: 64, Shuffle: true}),
		Valid:   data.NewLoader(sequences(1024, 2), data.Options{Batch: 256}),
		Steps:   *steps, Every: max(*steps/20, 1), Log: os.Stdout,
		Checkpoint: *checkpoint, Callbacks: callbacks,
	}, network)
	if err != nil {
		log.Fatal(err)
	}
	run.Close()
}
