package train

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"

	"tgc/ir"
	"tgc/nn"
)

// Checkpoints say what they are, so that a file of weights alone is not taken
// for one.
const (
	kindKey    = "tgc.kind"
	checkpoint = "training checkpoint 1"
)

// Values reads everything that a run needs to resume: parameters, optimiser
// state, counters and the seed.
func (t *Trainer) Values(ctx context.Context) (nn.Values, error) {
	return t.parameters.Save(ctx, t.function)
}

// Restore puts values that Values gave back.
func (t *Trainer) Restore(ctx context.Context, values nn.Values) error {
	return t.parameters.Load(ctx, t.function, values)
}

// Save writes a checkpoint. The file appears under its name only when it is
// complete, so a run that is killed leaves the one before.
func (t *Trainer) Save(ctx context.Context, path string) error { return t.save(ctx, path, nil) }

// save writes a checkpoint with more to remember.
func (t *Trainer) save(ctx context.Context, path string, more map[string]string) error {
	values, err := t.Values(ctx)
	if err != nil {
		return fmt.Errorf("train: save %s: %w", path, err)
	}
	metadata := map[string]string{kindKey: checkpoint}
	maps.Copy(metadata, more)
	return values.WriteFile(ctx, path, metadata)
}

// Resume goes on from a checkpoint: the next step is the one that the run which
// wrote it made next, to the bit, if it is fed the same.
func (t *Trainer) Resume(ctx context.Context, path string) error {
	_, err := t.resume(ctx, path)
	return err
}

// resume gives what save was given to remember.
func (t *Trainer) resume(ctx context.Context, path string) (metadata map[string]string, err error) {
	values, metadata, err := nn.ReadValues(path)
	if err != nil {
		return nil, err
	}
	if kind := metadata[kindKey]; kind != checkpoint {
		return nil, fmt.Errorf("train: %s: %s is %q, want %q", path, kindKey, kind, checkpoint)
	}
	if err := t.Restore(ctx, values); err != nil {
		return nil, fmt.Errorf("train: %s: %w", path, err)
	}
	return metadata, nil
}

// LoadWeights puts the tensors of safetensors files into the parameters of the model: see
// nn.Parameters.LoadFile. Optimiser state and counters stay as they are.
func (t *Trainer) LoadWeights(ctx context.Context, path string, name func(parameter string) string) (unused []string, err error) {
	return t.parameters.LoadFile(ctx, t.function, path, func(parameter string) string {
		switch {
		case isOwn(parameter):
			return ""
		case name != nil:
			return name(parameter)
		}
		return parameter
	})
}

// seeded is the initial state of a run.
func seeded(p *nn.Parameters, seed uint32) nn.Values {
	values := p.Initial(seed)
	values[bufferSeed] = nn.Value{DType: ir.U32, Shape: []int{1}, Data: binary.LittleEndian.AppendUint32(nil, seed)}
	return values
}
