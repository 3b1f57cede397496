package cuda

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"tgc/internal/nvrtc"
	"tgc/internal/programtest"
	"tgc/ir/program"
	"tgc/runtime/cuda/emulator"
	"tgc/runtime/interp"
)

// Programs printed as CUDA C run on a device, here the emulator, and their
// machine code is cached apart from that of PTX.
func TestSourceInC(t *testing.T) {
	if _, err := nvrtc.FromEnvironment(); errors.Is(err, nvrtc.ErrNotFound) {
		t.Skip(err)
	}
	t.Setenv(sourceVariable, "c")
	drv, err := emulator.New(emulator.Options{MemoryBytes: emulatedBytes})
	check(t, err)
	d, err := New(Options{Driver: drv, NoCache: true})
	check(t, err)
	t.Cleanup(func() { stop(t, d) })
	reference := interp.New(interp.Options{Debug: true})
	p, stores := programtest.Generate(3, 40)
	compiled := load(t, d, expanded(d, p)...)[0]
	if source := compiled.(*Executable).Source(); !strings.Contains(source, "__global__") {
		t.Errorf("source is no CUDA C: %.80s", source)
	}
	buffers, vars := programtest.Inputs(rand.New(rand.NewPCG(3, 6))), map[string]int64{"n": 2}
	got := runOn(t, d, compiled, buffers, vars)[programtest.OutputSlot]
	want := runOn(t, reference, load(t, reference, p)[0], buffers, vars)[programtest.OutputSlot]
	for _, s := range stores {
		end := s.Offset + int64(s.Value.Type.Lanes*s.Value.Type.Elem.Size())
		if lane, same := programtest.SameLanes(s.Value.Type.Elem, got[s.Offset:end], want[s.Offset:end]); !same {
			t.Errorf("%s lane %d: cuda %x, interpreter %x", s.Value, lane, got[s.Offset:end], want[s.Offset:end])
		}
	}
}

// What is no source is refused, and so is CUDA C where its compiler is absent.
func TestSourceErrors(t *testing.T) {
	if _, err := rendererNamed("rust"); err == nil || !strings.Contains(err.Error(), "want ptx or c") {
		t.Errorf("got %v", err)
	}
	d := &Device{}
	d.nvrtc.once.Do(func() { d.nvrtc.err = nvrtc.ErrNotFound })
	if _, err := d.nvrtc.ptx(d, &Rendered{CUDA: true}); !errors.Is(err, nvrtc.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if text, err := d.nvrtc.ptx(d, &Rendered{Text: "x"}); text != "x" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	var _ Renderer = RenderCUDA
	if _, err := RenderCUDA(&program.Program{Name: "k", Body: &program.Block{}}, nil); err == nil {
		t.Error("no target and no error")
	}
}
