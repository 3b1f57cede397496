package hcq_test

import (
	"testing"

	"tgc/runtime/hcq"
	"tgc/runtime/hcq/word"
	"tgc/runtime/nvidia"
)

// A descriptor asks for the shared memory that a plan says, or one block needs; without a plan's word for what all blocks need.
func TestTargetConfig(t *testing.T) {
	for _, c := range []struct{ carveout, shared, want int }{
		{0, 1 << 10, 16 << 10}, // 12 blocks of 128 threads
		{32, 1 << 10, 32 << 10},
		{8, 20 << 10, 32 << 10},
	} {
		r := &nvidia.Rendered{Block: [3]int{128, 1, 1}, Carveout: c.carveout}
		if got := hcq.TargetConfig(r, 32, c.shared); got != word.SharedConfig(c.want) {
			t.Errorf("carveout %d, %d bytes a block: configuration %d, want %d", c.carveout, c.shared, got, word.SharedConfig(c.want))
		}
	}
}
