package llm

import (
	"context"
	"fmt"
	"sync"

	"tgc/packed"
	"tgc/runtime"
	"tgc/target"
	"tgc/tensor"
)

// importsAtOnce is how many weights are on their way to a device: most are a few
// pieces of a pinned buffer, too few to keep all the buffers busy.
const importsAtOnce = 8

// importWeights puts the weights among the buffers on the device, several at once.
func (s *Session) importWeights(ctx context.Context, buffers []tensor.BufferInfo) error {
	var weights []tensor.BufferInfo
	for _, b := range buffers {
		if _, ok := s.model.File.Tensor(b.Name); ok {
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

// weightTarget is the target with the layout of packed weights that suits it: a
// GPU copies them anyway, and reads whole words of planes.
func weightTarget(desc *target.Desc) *target.Desc {
	if desc.Kind == target.GPU {
		return desc.WithPlanes()
	}
	return desc
}

// importWeight puts a weight on the device in the layout of the target.
func (s *Session) importWeight(ctx context.Context, b tensor.BufferInfo) (runtime.Memory, error) {
	t, _ := s.model.File.Tensor(b.Name)
	data := t.Data()
	f, packedFormat := packed.Lookup(b.Format)
	if !weightTarget(s.device.Target()).Planes || !packedFormat || f.IsPlain() {
		return s.device.Import(ctx, data)
	}
	blocks := int64(len(data) / f.BlockBytes)
	k, _ := b.Shape[len(b.Shape)-1].Int()
	perRow := k / int64(f.BlockElems)
	return runtime.ImportSource(ctx, s.device, packed.NewPlaneReader(f, blocks/perRow, perRow, data))
}
