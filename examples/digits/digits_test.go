package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tgc/nn"
	"tgc/runtime/cpu"
)

func needCPU(t *testing.T) {
	t.Helper()
	dev, err := cpu.New(t.Context(), cpu.Options{Threads: 1})
	if errors.Is(err, cpu.ErrNoLLVM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestPicturesDependOnTheirNumbersAlone(t *testing.T) {
	batch := func(series uint64, samples ...int) nn.Values {
		b, err := pictures(series, 100).Batch(samples)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	a, b := batch(1, 10, 11, 12), batch(1, 12, 40)
	own, same := a["pictures"].Float32s()[2*size*size:], b["pictures"].Float32s()[:size*size]
	if !slices.Equal(own, same) || a["digits"].Data[8] != b["digits"].Data[0] {
		t.Error("the same pictures differ")
	}
	if other := batch(2, 12); slices.Equal(same, other["pictures"].Float32s()) {
		t.Error("another series has the same pictures")
	}
	for i, v := range a["pictures"].Float32s() {
		if v < -1 || v > 2 {
			t.Fatalf("value %d is %v, want near 0..1", i, v)
		}
	}
}

// A short run reports its progress and its kernels; a second one goes on where
// it stopped.
func TestRunAndResume(t *testing.T) {
	needCPU(t)
	opt := options{steps: 30, batch: 32, unseen: 200, device: "cpu", checkpoint: filepath.Join(t.TempDir(), "digits.safetensors"), curve: filepath.Join(t.TempDir(), "curve")}
	for _, run2 := range []struct {
		steps       int
		first, last string
	}{{30, "step     3", "step    30"}, {36, "step    33", "step    36"}} {
		var out bytes.Buffer
		opt.steps, opt.out = run2.steps, &out
		if err := run(t.Context(), opt); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		first := strings.Index(text, "step ")
		if first < 0 || !strings.HasPrefix(text[first:], run2.first) || !strings.Contains(text, run2.last) || !strings.Contains(text, "kernels in") {
			t.Errorf("want %q first, then %q and kernels:\n%s", run2.first, run2.last, text)
		}
	}
}

func TestRunIsCancelled(t *testing.T) {
	needCPU(t)
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	path := filepath.Join(t.TempDir(), "digits.safetensors")
	opt := options{steps: 1 << 20, batch: 8, unseen: 200, device: "cpu", checkpoint: path, out: &stopper{&out, cancel}}
	if err := run(ctx, opt); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("no checkpoint:", err)
	}
}

// stopper cancels at the first thing that is printed.
type stopper struct {
	*bytes.Buffer
	cancel context.CancelFunc
}

func (s *stopper) Write(b []byte) (int, error) {
	s.cancel()
	return s.Buffer.Write(b)
}
