package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"tgc/kernel/plan"
)

// faultyRecording is a step whose kernel faults.
type faultyRecording struct{ kernel string }

func (f faultyRecording) Error() string         { return "kernel " + f.kernel + " faulted" }
func (f faultyRecording) FaultedKernel() string { return f.kernel }

func (f faultyRecording) Run(context.Context, map[string]int64) error { return f }
func (f faultyRecording) Profile(context.Context, map[string]int64) ([]time.Duration, error) {
	return nil, f
}
func (f faultyRecording) Free() {}

// The error of a kernel that faults says how it was planned.
func TestFaultNamesPlan(t *testing.T) {
	plan, err := plan.Parse("VECTOR r0 16; FMA")
	if err != nil {
		t.Fatal(err)
	}
	c := &Compiled{Kernels: []*Kernel{{Name: "other"}, {Name: "culprit", Plan: plan}}}
	for name, want := range map[string]string{"culprit": "kernel culprit faulted; its plan: VECTOR r0 16; FMA", "unknown": "kernel unknown faulted"} {
		s := &Step{Compiled: c, recording: faultyRecording{name}}
		_, profiled := s.Profile(t.Context(), nil)
		for _, err := range []error{s.Run(t.Context(), nil), s.Start(t.Context(), nil), profiled} {
			var fault faultyRecording
			if err == nil || err.Error() != want || !errors.As(err, &fault) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
}
