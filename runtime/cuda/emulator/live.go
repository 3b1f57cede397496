package emulator

import (
	"fmt"
	"strings"
)

// Live says what has not been given back, a count per kind; empty for nothing,
// and after a fault, which takes everything.
func (d *Driver) Live() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.context == nil {
		return strings.Join(d.left, ", ")
	}
	return strings.Join(append(d.context.live(), "1 contexts"), ", ")
}

func (c *gpuContext) live() []string {
	var parts []string
	for _, kind := range []struct {
		name  string
		count int
	}{
		{"allocations", len(c.sizes)}, {"pinned", len(c.pinned)}, {"streams", len(c.streams)}, {"events", len(c.events)},
		{"modules", len(c.modules)}, {"graphs", len(c.graphs)}, {"instances", len(c.instances)},
	} {
		if kind.count > 0 && c.fault == nil {
			parts = append(parts, fmt.Sprintf("%d %s", kind.count, kind.name))
		}
	}
	return parts
}
