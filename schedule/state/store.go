package state

import (
	"encoding/json"
	"fmt"
	"strings"

	"tgc/ir"
)

// A schedule as bytes, for who keeps it: buffers, launches, and each kernel's text once. Records are not kept: they
// are for people, who have the graph scheduled.

type storedSchedule struct {
	Kernels    []string // texts; those of equal layers are one
	Buffers    []storedBuffer
	Launches   [][]storedKernel
	ArenaBytes int64
	Values     int
	Decisions  []Decision
}

type storedBuffer struct {
	UserID        int64
	DType         string
	Shape         []string // texts of extents
	Format        string
	Bytes, Offset int64
}

type storedKernel struct {
	Text    int // index into Kernels
	Args    []int
	Name    string
	Reasons []string
}

// Store is the schedule as bytes.
func (s *Schedule) Store() ([]byte, error) {
	out := storedSchedule{ArenaBytes: s.ArenaBytes, Values: s.Values, Decisions: s.Decisions.List()}
	for _, b := range s.Buffers {
		stored := storedBuffer{b.UserID, b.DType.String(), make([]string, len(b.Shape)), b.Format, b.Bytes, b.Offset}
		for i, extent := range b.Shape {
			var err error
			if stored.Shape[i], err = textOf(extent); err != nil {
				return nil, err
			}
		}
		out.Buffers = append(out.Buffers, stored)
	}
	known := make(map[string]int)
	for _, l := range s.Launches {
		var list []storedKernel
		for _, k := range l.Kernels {
			text, err := textOf(k.AST)
			if err != nil {
				return nil, err
			}
			at, ok := known[text]
			if !ok {
				at = len(out.Kernels)
				known[text], out.Kernels = at, append(out.Kernels, text)
			}
			list = append(list, storedKernel{at, k.Args, k.Name, k.Reasons})
		}
		out.Launches = append(out.Launches, list)
	}
	return json.Marshal(out)
}

func textOf(u *ir.UOp) (string, error) {
	var b strings.Builder
	err := ir.Print(&b, u)
	return b.String(), err
}

// Restore reads what Store wrote. The nodes are made in an arena.
func Restore(a *ir.Arena, data []byte) (*Schedule, error) {
	var in storedSchedule
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	out := &Schedule{ArenaBytes: in.ArenaBytes, Values: in.Values, Decisions: Decisions{}.With(in.Decisions...)}
	for _, b := range in.Buffers {
		restored, err := b.restore(a)
		if err != nil {
			return nil, err
		}
		out.Buffers = append(out.Buffers, restored)
	}
	kernels := make([]*ir.UOp, len(in.Kernels))
	for i, text := range in.Kernels {
		var err error
		if kernels[i], err = ir.Parse(a, text); err != nil {
			return nil, fmt.Errorf("schedule: kernel %d: %w", i, err)
		}
		if err := ir.VerifyKernel(kernels[i]); err != nil {
			return nil, fmt.Errorf("schedule: kernel %d: %w", i, err)
		}
	}
	for _, list := range in.Launches {
		var l Launch
		for _, k := range list {
			if k.Text < 0 || k.Text >= len(kernels) {
				return nil, fmt.Errorf("schedule: kernel %d of %d", k.Text, len(kernels))
			}
			for _, b := range k.Args {
				if b < 0 || b >= len(out.Buffers) {
					return nil, fmt.Errorf("schedule: buffer %d of %d", b, len(out.Buffers))
				}
			}
			l.Kernels = append(l.Kernels, &Kernel{AST: kernels[k.Text], Args: k.Args, Name: k.Name, Reasons: k.Reasons})
		}
		out.Launches = append(out.Launches, l)
	}
	return out, nil
}

func (b storedBuffer) restore(a *ir.Arena) (out Buffer, err error) {
	out = Buffer{UserID: b.UserID, Format: b.Format, Bytes: b.Bytes, Offset: b.Offset}
	if out.DType, err = ir.ParseDType(b.DType); err != nil {
		return out, fmt.Errorf("schedule: buffer: %w", err)
	}
	for _, text := range b.Shape {
		extent, err := ir.Parse(a, text)
		if err != nil {
			return out, fmt.Errorf("schedule: buffer's extent: %w", err)
		}
		out.Shape = append(out.Shape, extent)
	}
	return out, nil
}
