package llm

import (
	"context"
	"math"

	"tgc/engine"
	"tgc/gguf"
	"tgc/internal/lists"
	"tgc/packed"
	"tgc/runtime"
	"tgc/target"
	"tgc/tensor"
)

// WeightCodes says in which code a step reads weights that lie in records (packed.Recoded). The zero value is the file's.
type WeightCodes struct {
	Bits   int     // of records, at most: packed.Format.Interleaves
	Growth float64 // most bytes of another code for each of the file's
}

// of is the format in which a step reads a weight: the file's, or one with another code.
func (c WeightCodes) of(f *packed.Format, shape []int) *packed.Format {
	if to, ok := recoded(f, shape); ok && to.Interleaves(wide(shape), c.Bits) && bitsOf(to) <= c.Growth*bitsOf(f) {
		return to
	}
	return f
}

// recoded is another code of a weight's rows.
func recoded(f *packed.Format, shape []int) (*packed.Format, bool) {
	if len(shape) == 0 {
		return nil, false
	}
	return packed.Recoded(f, int64(shape[len(shape)-1]))
}

// bitsOf is what a weight takes.
func bitsOf(f *packed.Format) float64 { return 8 * float64(f.BlockBytes) / float64(f.BlockElems) }

// wide is a shape in int64.
func wide(shape []int) []int64 {
	return lists.Map(shape, func(n int) int64 { return int64(n) })
}

// codesFor are the codes of weights that lie in records as chosen.
func codesFor(chosen engine.Records, desc *target.Desc) WeightCodes {
	if chosen <= 0 || !desc.CanInterleave() {
		return WeightCodes{}
	}
	return WeightCodes{Bits: int(chosen), Growth: growthFor(desc)}
}

// growthFor is how much larger weights may become that are easier to take apart: cores that wait for their own instructions read
// more without being slower, those that share a memory that is busy do not.
func growthFor(desc *target.Desc) float64 {
	if desc.Cost.Workers <= busyMemory {
		return math.Inf(1)
	}
	return 1.3
}

// busyMemory is the most workers of which a memory is faster than they take grids apart. 16 cores of Sapphire Rapids that read 100 to 120 GB/s
// together, eight layers of LLaMA 1B, decode, tokens a second in the file's code and in the other one: IQ2_XXS int8 188 and 417, exact 115 and
// 265; IQ1_S, which becomes 2.8 times as large, 157 and 402, 114 and 286. What grows with the cores is the first of each pair.
const busyMemory = 32

// bytesOf is what a weight of a file takes in a code.
func (c WeightCodes) bytesOf(t *gguf.Tensor) int64 {
	f, ok := packed.ByGGUF(uint32(t.Type))
	if !ok || f.IsPlain() {
		return int64(t.Bytes())
	}
	to := c.of(f, t.Shape())
	return int64(t.Elements()/to.BlockElems) * int64(to.BlockBytes)
}

// importPacked puts a packed weight on the device, in the layout and in the code of the buffer.
func (s *Session) importPacked(ctx context.Context, b tensor.BufferInfo, t *gguf.Tensor) (runtime.Memory, error) {
	layout := engine.WeightLayout(s.options.Config.TargetFor(s.device.Target()), b.Format, b.Shape)
	if f, ok := packed.ByGGUF(uint32(t.Type)); ok && b.Format != "" && f.Name != b.Format {
		return layout.ImportRecoded(ctx, s.device, f, t.Data())
	}
	return layout.Import(ctx, s.device, t.Data())
}
