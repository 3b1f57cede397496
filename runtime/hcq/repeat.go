package hcq

import (
	"context"
	"fmt"

	"tgc/runtime"
)

// Repeat is the step n times in a run: as many entries over the same words.
func (r *Recording) Repeat(_ context.Context, n int) (runtime.Recording, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(); err != nil {
		return nil, err
	}
	out := &Recording{device: r.device, times: n * r.times}
	out.uses.Memory = r.uses.Memory
	for _, c := range r.calls {
		out.calls = append(out.calls, &call{Call: c.Again(0), code: c.code})
	}
	if len(out.calls) == 0 {
		return out, nil
	}
	r.device.mu.Lock()
	defer r.device.mu.Unlock()
	if err := r.device.usable(); err != nil {
		return nil, err
	}
	if err := out.build(); err != nil {
		return nil, fmt.Errorf("hcq: repeat: %w", err)
	}
	out.enlist()
	return out, nil
}
