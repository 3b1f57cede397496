package devices

import (
	"context"
	"io"
	"slices"
	"testing"

	"tgc/runtime"
)

// A device by its name has what it had by itself: the ways of making memory that only some have.
func TestForwardsMemory(t *testing.T) {
	inner := &rich{}
	dev := runtime.Device(&Device{Device: inner})
	ctx := t.Context()
	if s, ok := dev.(runtime.Scratcher); ok {
		_, _ = s.AllocScratch(ctx, 1)
	}
	_, _ = runtime.AllocWhole(ctx, dev, 1)
	_, _ = runtime.ImportSource(ctx, dev, io.NewSectionReader(nil, 0, 0))
	if want := []string{"scratch", "whole", "source"}; !slices.Equal(inner.asked, want) {
		t.Errorf("the device was asked for %v, want %v", inner.asked, want)
	}
}

// rich is a device with every way of making memory.
type rich struct {
	runtime.Device
	asked []string
}

func (r *rich) ask(what string) (runtime.Memory, error) {
	r.asked = append(r.asked, what)
	return nil, nil
}

func (r *rich) AllocScratch(context.Context, int64) (runtime.Memory, error) { return r.ask("scratch") }

func (r *rich) AllocWhole(context.Context, int64) (runtime.Memory, error) { return r.ask("whole") }

func (r *rich) ImportSource(context.Context, runtime.Source) (runtime.Memory, error) {
	return r.ask("source")
}
