package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"tgc/internal/testkit"
	"tgc/ir"
	"tgc/runtime"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/target"
)

// Graphs that were compiled wrongly once, under every profile and on the CPU device.
func TestKitKnownGraphs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "known", "*.uop"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no graphs in testdata/known: %v", err)
	}
	every := schedule.DefaultOptions()
	every.Off = nil
	dev := openCPU(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := testkit.Parse(string(text), 2)
			if err != nil {
				t.Fatal(err)
			}
			want, err := c.Expected()
			if err != nil {
				t.Fatal(err)
			}
			for _, opt := range []schedule.Options{schedule.DefaultOptions(), schedule.CPUOptions(), every} {
				checkKernels(t, c, opt, want)
			}
			for _, name := range []string{"interp", "llvm:x86-64-v3", "llvm:x86-64-v4", "ptx:sm_80", "ptx:sm_90a"} {
				checkTarget(t, c, name, want)
			}
			mustEqualOnDevice(t, c, dev, want)
		})
	}
}

func checkKernels(t *testing.T, c *testkit.Case, opt schedule.Options, want map[int64]*testkit.Numbers) {
	sink, err := c.Sink()
	if err != nil {
		t.Fatal(err)
	}
	a := ir.NewArena()
	s, err := schedule.Run(t.Context(), a, a.Import(sink), opt)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.RunSchedule(t.Context(), s, interp.KernelOptions{})
	if err != nil {
		t.Fatalf("%v\n%s", err, s)
	}
	if err := testkit.Compare(got, want); err != nil {
		t.Errorf("%v\n%s", err, s)
	}
}

func checkTarget(t *testing.T, c *testkit.Case, name string, want map[int64]*testkit.Numbers) {
	desc, err := target.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile(t.Context(), desc, checked())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	got, err := c.Run(t.Context(), debugInterp(), compiled)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := testkit.Compare(got, want); err != nil {
		t.Errorf("%s: %v\n%s", name, err, compiled.Schedule)
	}
}

func mustEqualOnDevice(t *testing.T, c *testkit.Case, dev runtime.Device, want map[int64]*testkit.Numbers) {
	compiled, err := c.Compile(t.Context(), dev.Target(), checked())
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Run(t.Context(), dev, compiled)
	if err != nil {
		t.Fatalf("cpu: %v", err)
	}
	if err := testkit.Compare(got, want); err != nil {
		t.Errorf("cpu: %v\n%s", err, compiled.Schedule)
	}
}
