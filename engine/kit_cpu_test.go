package engine_test

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"
	"tgc/internal/testkit"
	"tgc/runtime/cpu"
	"tgc/runtime/interp"
)

// openCPU starts the CPU device, or skips the test where there is no libLLVM.
func openCPU(t *testing.T) *cpu.Device {
	dev, err := cpu.New(t.Context(), cpu.Options{NoCache: true, Threads: 2})
	if errors.Is(err, cpu.ErrNoLLVM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// The CPU and the interpreter run the same programs to the same bits, and both
// equal the eager model. Compiling through LLVM takes tens of milliseconds a
// graph, so only some are tried.
func TestKitCPUEqualsInterp(t *testing.T) {
	dev := openCPU(t)
	tried := 0
	rapid.Check(t, func(t *rapid.T) {
		if tried++; tried > 40 && !testing.Verbose() {
			return
		}
		c := drawCase(t, false)
		compiled, err := c.Compile(context.Background(), dev.Target(), checked())
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, c.Text(), scheduleText(c))
		}
		want, err := c.Expected()
		if err != nil {
			t.Fatal(err)
		}
		slow, err := c.Run(context.Background(), interp.New(interp.Options{}), compiled)
		if err != nil {
			t.Fatalf("interp: %v\n%s\n%s", err, c.Text(), compiled.Schedule)
		}
		if err := testkit.Compare(slow, want); err != nil {
			t.Fatalf("interp: %v\n%s\n%s", err, c.Text(), compiled.Schedule)
		}
		fast, err := c.Run(context.Background(), dev, compiled)
		if err != nil {
			t.Fatalf("cpu: %v\n%s\n%s", err, c.Text(), compiled.Schedule)
		}
		if err := testkit.SameBits(slow, fast); err != nil {
			t.Fatalf("interp and cpu: %v\n%s\n%s", err, c.Text(), compiled.Schedule)
		}
	})
}
