package llm

import (
	"context"
	"fmt"
	"sync"

	"tgc/engine"
	"tgc/runtime"
	"tgc/tensor"
)

// importsAtOnce is how many weights are on their way to a device: most are a few
// pieces of a pinned buffer, too few to keep all the buffers busy.
const importsAtOnce = 8

// importWeights puts the weights among the buffers on the device, several at once.
func (s *Session) importWeights(ctx context.Context, buffers []tensor.BufferInfo) error {
	var weights []tensor.BufferInfo
	for _, b := range buffers {
		if _, ok := s.model.File.Tensor(b.Name); ok && s.memory[b.Name] == nil {
			weights = append(weights, b)
		}
	}
	memory, errs := make([]runtime.Memory, len(weights)), make([]error, len(weights))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(importsAtOnce, len(weights)) {
		workers.Go(func() {
			for i := range next {
				memory[i], errs[i] = s.importWeight(ctx, weights[i])
			}
		})
	}
	for i := range weights {
		next <- i
	}
	close(next)
	workers.Wait()
	for i, b := range weights {
		if errs[i] == nil {
			s.memory[b.Name] = memory[i]
			s.owned = append(s.owned, memory[i])
		}
	}
	for i, b := range weights {
		if errs[i] != nil {
			return fmt.Errorf("llm: buffer %q: %w", b.Name, errs[i])
		}
	}
	return nil
}

// importWeight puts a weight on the device.
func (s *Session) importWeight(ctx context.Context, b tensor.BufferInfo) (runtime.Memory, error) {
	t, _ := s.model.File.Tensor(b.Name)
	return engine.WeightLayout(s.device.Target(), b.Format, b.Shape).Import(ctx, s.device, t.Data())
}
