package synth

import (
	"context"
	"encoding/binary"
	"math"

	"tgc/gguf"
)

// Write writes a model to a file. The file appears under its name only when it
// is complete. progress, which may be nil, is told bytes of tensor data.
func Write(ctx context.Context, shape Shape, path string, seed uint64, progress func(done, total int64)) error {
	w, err := shape.writer(func(t *Tensor) (gguf.Fill, error) { return t.fill(seed) })
	if err != nil {
		return err
	}
	return w.WriteFile(ctx, path, progress)
}

// Memory makes a model in memory, outside the Go heap. Closing the File gives
// the memory back.
func Memory(ctx context.Context, shape Shape, seed uint64) (*gguf.File, error) {
	w, err := shape.writer(func(t *Tensor) (gguf.Fill, error) { return t.fill(seed) })
	if err != nil {
		return nil, err
	}
	return w.Memory(ctx, shape.Name, nil)
}

// Outline makes a model in memory whose packed matrices are all zero, which
// takes neither time nor memory: enough to compile a model that is not to run.
func Outline(ctx context.Context, shape Shape) (*gguf.File, error) {
	w, err := shape.writer(func(t *Tensor) (gguf.Fill, error) {
		if t.Type != gguf.F32 {
			return nil, nil
		}
		return t.fill(0)
	})
	if err != nil {
		return nil, err
	}
	return w.Memory(ctx, shape.Name, nil)
}

// writer describes the whole file; nothing is generated yet.
func (s *Shape) writer(fillOf func(*Tensor) (gguf.Fill, error)) (*gguf.Writer, error) {
	w := gguf.NewWriter()
	s.metadata(w)
	for _, t := range s.Tensors() {
		fill, err := fillOf(&t)
		if err != nil {
			return nil, err
		}
		w.Add(t.Name, t.Type, t.Dims, fill)
	}
	return w, nil
}

// fill returns the source of a tensor's data.
func (t *Tensor) fill(seed uint64) (gguf.Fill, error) {
	switch {
	case t.values != nil:
		var data []byte
		for _, x := range t.values {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
		return gguf.FromBytes(data), nil
	case t.Type == gguf.F32:
		return fillF32(newStream(seed, t.Name, 0), t.mean, t.std), nil
	}
	return Fill(t.Type, t.std, seed, t.Name)
}
