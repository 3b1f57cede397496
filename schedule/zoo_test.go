package schedule_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tgc/nn"
	"tgc/runtime/interp"
	"tgc/schedule"
)

// zoo lists the architectures with the kernels and launches that a layer takes.
// Sizes are small enough to evaluate every kernel form against the tensor form.
var zoo = []struct {
	name              string
	edit              func(*arch)
	position          int64
	kernels, launches int
}{
	{"llama", func(m *arch) {}, 3, 7, 5},
	{"llama position 0", func(m *arch) {}, 0, 7, 5},
	{"llama prefill", func(m *arch) { m.tokens = 3 }, 2, 7, 5},
	{"llama batch", func(m *arch) { m.batch = 2 }, 2, 7, 5},
	{"llama batch prefill", func(m *arch) { m.batch, m.tokens = 2, 3 }, 2, 7, 5},
	{"llama Q6_K", func(m *arch) { m.format, m.width, m.heads, m.kv, m.head, m.ff = "Q6_K", 256, 4, 2, 64, 256 }, 3, 7, 5},
	{"llama Q4_K Q6_K", func(m *arch) {
		m.format, m.vFormat, m.width, m.heads, m.kv, m.head, m.ff = "Q4_K", "Q6_K", 256, 4, 2, 64, 256
	}, 3, 7, 5},
	{"llama whole", func(m *arch) { m.embed, m.output, m.layers = true, true, 2 }, 3, 16, 12},
	{"qwen2", func(m *arch) { m.bias, m.pairing = true, nn.PairHalves }, 3, 7, 5},
	{"qwen3", func(m *arch) {
		m.headNorm, m.pairing, m.heads, m.kv, m.head, m.width = "each", nn.PairHalves, 32, 16, 8, 256
	}, 3, 7, 5},
	{"gpt2", func(m *arch) { m.gpt2, m.kv = true, 4 }, 3, 6, 5},
	{"olmoe", func(m *arch) {
		m.headNorm, m.pairing, m.kv, m.experts, m.used, m.ff = "all", nn.PairHalves, 4, 4, 2, 64
	}, 3, 8, 6},
}

func TestZoo(t *testing.T) {
	for _, row := range zoo {
		t.Run(row.name, func(t *testing.T) {
			m := llamaTiny()
			row.edit(&m)
			r := modelRig(t, m, row.position)
			s := r.plan(schedule.DefaultOptions())
			kernels := 0
			for _, l := range s.Launches {
				kernels += len(l.Kernels)
			}
			got, want := fmt.Sprintf("%d kernels in %d launches", kernels, len(s.Launches)), fmt.Sprintf("%d kernels in %d launches", row.kernels, row.launches)
			if got != want {
				t.Errorf("%s, want %s\n%s", got, want, s)
			}
			r.check(s, interp.KernelOptions{}, 2e-5)
			golden(t, strings.ReplaceAll(row.name, " ", "_"), s.String())
			cpu := r.plan(schedule.CPUOptions())
			r.check(cpu, interp.KernelOptions{}, 2e-5)
		})
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with testdata/NAME.txt. A missed hoist changes no value:
// only the text shows it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: the schedule changed (-want +got), -update rewrites it:\n%s", path, diff)
	}
}
