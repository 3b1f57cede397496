package engine

import (
	"context"
	"fmt"

	"tgc/internal/mapfile"
	"tgc/ir"
	"tgc/packed"
	"tgc/runtime"
	"tgc/target"
)

// Layout says how the bytes of a user's buffer lie in device memory: as they do on
// the host, or, of packed weights, in planes or records (packed.Layout). The zero value is
// the first.
type Layout struct {
	format *packed.Format // nil: as on the host
	order  packed.Layout
	rows   int64
	blocks int64 // of a row
}

// WeightLayout is the layout in which a target reads a buffer of some format and
// shape; format is empty for plain elements. A GPU copies weights anyway and reads
// whole words of planes; a CPU reads them where they are, in a mapped file, or, where lanes
// of rows make its products faster, in records.
func WeightLayout(desc *target.Desc, format string, shape []*ir.UOp) Layout {
	f, ok := packed.Lookup(format)
	planes := desc.Kind == target.GPU || desc.Planes
	if !planes && desc.Records == 0 || !ok || f.IsPlain() || len(shape) == 0 {
		return Layout{}
	}
	l := Layout{format: f, rows: 1}
	extents := make([]int64, len(shape))
	for i, dim := range shape {
		n, constant := dim.Int()
		extents[i] = n
		switch {
		case !constant:
			return Layout{}
		case i == len(shape)-1:
			l.blocks = n / int64(f.BlockElems)
		default:
			l.rows *= n
		}
	}
	if l.order = packed.LayoutOf(f, extents, planes, desc.Records); l.order == packed.Identity {
		return Layout{}
	}
	return l
}

// Records says whether packed weights are interleaved on a CPU. Their layout is one for all
// steps that read them, and costs a copy: who loads them decides.
type Records int

// The choices; a number is the most bits a weight of those that are interleaved.
const (
	RecordsByPrice Records = 0 // of a model's weights: see llm; of a single graph's, in the host's order
	RecordsNever   Records = -1
	RecordsAlways  Records = packed.RecordBits
)

// TargetFor is the target with the layout that is chosen for packed weights.
func (c *Config) TargetFor(desc *target.Desc) *target.Desc {
	if c.Records <= 0 || !desc.CanInterleave() {
		return desc
	}
	return desc.WithRecords(int(c.Records))
}

// forWeights is the target with the layout of the packed buffers of a graph. In planes
// there is one for all of them: without constant shapes they lie as on the host.
func forWeights(sink *ir.UOp, desc *target.Desc, config *Config) *target.Desc {
	desc = config.TargetFor(desc)
	if desc.Kind != target.GPU || desc.Planes {
		return desc
	}
	found := false
	for _, u := range ir.Toposort(sink) {
		format := formatOf(u)
		if format == "" {
			continue
		}
		if (WeightLayout(desc, format, u.Src) == Layout{}) {
			return desc
		}
		found = true
	}
	if !found {
		return desc
	}
	return desc.WithPlanes()
}

// formatOf is the packed format of a buffer, in a tensor graph or a kernel.
func formatOf(u *ir.UOp) string {
	switch arg := u.Arg.(type) {
	case ir.BufferArg:
		return arg.Format
	case ir.ParamArg:
		return arg.Format
	}
	return ""
}

// Layout is the layout of a user's buffer, by its ID.
func (c *Compiled) Layout(id int64) Layout {
	for i := range c.Schedule.Buffers {
		if b := &c.Schedule.Buffers[i]; b.UserID == id && (c.Target.Planes || c.Target.Records > 0) {
			return WeightLayout(c.Target, b.Format, b.Shape)
		}
	}
	return Layout{}
}

// Bytes is the size of device memory for host bytes of this size.
func (l Layout) Bytes(host int64) int64 {
	if l.format == nil {
		return host
	}
	return l.order.Place(l.format, l.rows, l.blocks).Bytes
}

// check reports host bytes of a wrong size.
func (l Layout) check(data []byte) error {
	if want := l.rows * l.blocks * int64(l.format.BlockBytes); int64(len(data)) != want {
		return fmt.Errorf("got %d bytes, want %d (%d rows of %d %s blocks)", len(data), want, l.rows, l.blocks, l.format.Name)
	}
	return nil
}

// Import makes read-only device memory of host bytes, without a copy where the device
// can and the layouts agree: data must outlive it.
func (l Layout) Import(ctx context.Context, dev runtime.Device, data []byte) (runtime.Memory, error) {
	if l.format == nil {
		return dev.Import(ctx, data)
	}
	if err := l.check(data); err != nil {
		return nil, err
	}
	if l.order == packed.Records {
		return runtime.ImportSource(ctx, dev, packed.NewRecordReader(l.format, l.rows, l.blocks, data))
	}
	return runtime.ImportSource(ctx, dev, packed.NewPlaneReader(l.format, l.rows, l.blocks, data))
}

// ImportRecoded is Import of bytes in a format that has another code, which the layout is of.
func (l Layout) ImportRecoded(ctx context.Context, dev runtime.Device, from *packed.Format, data []byte) (runtime.Memory, error) {
	if l.format == nil || l.order != packed.Records {
		return nil, fmt.Errorf("%s in a layout of another code: want records of packed.Recoded", from.Name)
	}
	reader, err := packed.NewRecodedReader(from, l.format, l.rows, l.blocks, data)
	if err != nil {
		return nil, err
	}
	return runtime.ImportSource(ctx, dev, reader)
}

// Write fills device memory with host bytes.
func (l Layout) Write(ctx context.Context, m runtime.Memory, data []byte) error {
	if l.format == nil {
		return m.Write(ctx, 0, data)
	}
	if err := l.check(data); err != nil {
		return err
	}
	var laid []byte
	err := mapfile.Guard(func() error {
		laid = packed.Convert(l.format, l.rows, l.blocks, packed.Identity, l.order, data)
		return nil
	})
	if err != nil {
		return err
	}
	return m.Write(ctx, 0, laid)
}

// Read returns device memory as the host has it, a number of bytes.
func (l Layout) Read(ctx context.Context, m runtime.Memory, host int64) ([]byte, error) {
	raw := make([]byte, l.Bytes(host))
	if err := m.Read(ctx, 0, raw); err != nil || l.format == nil {
		return raw, err
	}
	return packed.Convert(l.format, l.rows, l.blocks, l.order, packed.Identity, raw), nil
}
