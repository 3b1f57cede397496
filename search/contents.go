package search

import (
	"math/rand/v2"

	"tgc/engine"
	"tgc/ir"
	"tgc/packed"
	"tgc/schedule"
)

// contents makes what the buffers of a kernel hold: valid blocks of packed formats, floats
// between -1 and 1, integers from 0 up to a bound that the kernel accepts.
type contents struct {
	seed  uint64
	limit int64 // of integers wider than a byte
}

// usualLimit of integers suits kernels whose bounds nobody has asked for.
const usualLimit = 1

// RandomContents makes contents for NewCalls.
func RandomContents(kernel *engine.Compiled, seed uint64) func(set, slot int, bytes int64) []byte {
	return contents{seed, usualLimit}.ofKernel(kernel)
}

// ofKernel remembers what the first sets hold: later ones repeat it.
func (c contents) ofKernel(kernel *engine.Compiled) func(set, slot int, bytes int64) []byte {
	known := make(map[[2]int][]byte)
	args := kernel.Launches[0][0].Args
	return func(set, slot int, bytes int64) []byte {
		key := [2]int{set % seeds, slot}
		if known[key] == nil {
			known[key] = c.of(&kernel.Schedule.Buffers[args[slot]], key[0], slot, bytes)
		}
		return known[key]
	}
}

// seeds is how many contents differ.
const seeds = 2

// limits of integers are tried from the first: positions, indices and numbers of experts look
// alike, and what is out of a kernel's bounds is an error of the interpreter.
var integerLimits = []int64{1 << 20, 1023, 63, 7, 1, 0}

// pieceBlocks is how many blocks or elements are drawn: prime, so that rows of what they are
// repeated to differ.
const pieceBlocks = 65537

// of makes the bytes of a slot in a set of buffers.
func (c contents) of(b *schedule.Buffer, set, slot int, bytes int64) []byte {
	rng := rand.New(rand.NewPCG(c.seed+uint64(set), uint64(slot)))
	f, ok := packed.Lookup(b.Format)
	var piece []byte
	switch {
	case ok:
		piece = packed.RandomBlocks(f, int(min(bytes/int64(f.BlockBytes), pieceBlocks)), rng)
	default:
		n := min(bytes/int64(b.DType.Size()), pieceBlocks)
		values := make([]float64, n)
		for i := range values {
			values[i] = c.value(b.DType, rng)
		}
		piece = []byte(ir.EncodeTable(b.DType, values))
	}
	data := make([]byte, bytes)
	for at := 0; at < len(data) && len(piece) > 0; {
		at += copy(data[at:], piece)
	}
	return data
}

func (c contents) value(dtype ir.DType, rng *rand.Rand) float64 {
	switch {
	case dtype.IsFloat():
		return 2*rng.Float64() - 1
	case dtype == ir.Bool:
		return float64(rng.IntN(2))
	case dtype.Size() == 1:
		return float64(rng.IntN(256) - 128)
	}
	return float64(rng.Int64N(c.limit + 1))
}
