package llm

import (
	"context"
	"fmt"
	"io"

	"tgc/engine"
	"tgc/gguf"
	"tgc/ir"
	"tgc/runtime"
	"tgc/tensor"
)

// numberTypes are the GGUF types that hold plain numbers but are no weights.
var numberTypes = map[gguf.Type]ir.DType{gguf.I8: ir.I8, gguf.I16: ir.I16, gguf.I32: ir.I32, gguf.I64: ir.I64, gguf.F64: ir.F64}

// dumpElements bounds the values decoded at a time: 16 MiB of float32.
const dumpElements = 1 << 22

// DumpTensor writes a tensor's values as raw little-endian float32, decoded by
// a kernel compiled for the device. It needs memory for a few rows, whatever
// the tensor's size.
func DumpTensor(ctx context.Context, dev runtime.Device, config engine.Config, t *gguf.Tensor, w io.Writer) error {
	rows, columns := t.Rows(), t.RowLength()
	if columns > dumpElements {
		// Blocks lie one after the other, so any cut at a block's end will do.
		columns = t.Type.Info().Elements
		rows = t.Elements() / columns
	}
	data, rowBytes := t.Data(), t.Bytes()/rows
	var d *dumper
	defer func() { d.close() }()
	for rows > 0 {
		n := min(rows, max(1, dumpElements/columns))
		if d == nil || d.rows != n {
			d.close()
			var err error
			if d, err = newDumper(ctx, dev, config, t.Type, n, columns); err != nil {
				return fmt.Errorf("tensor %s: %w", t, err)
			}
		}
		if err := d.dump(ctx, data[:n*rowBytes], w); err != nil {
			return fmt.Errorf("tensor %s: %w", t, err)
		}
		data, rows = data[n*rowBytes:], rows-n
	}
	return nil
}

// dumper decodes a fixed number of rows.
type dumper struct {
	rows   int
	step   *engine.Step
	in     runtime.Memory
	out    runtime.Memory
	values []byte
}

func newDumper(ctx context.Context, dev runtime.Device, config engine.Config, typ gguf.Type, rows, columns int) (*dumper, error) {
	g := tensor.NewGraph()
	dtype, plain := plainTypes[typ]
	if !plain {
		dtype, plain = numberTypes[typ]
	}
	var x *tensor.Tensor
	if plain {
		x = g.Input("packed", dtype, rows, columns).Cast(ir.F32)
	} else {
		x = g.Packed("packed", typ.String(), rows, columns)
	}
	g.Output("values", x)
	compiled, err := g.Compile(ctx, dev.Target(), config)
	if err != nil {
		return nil, err
	}
	rowBytes, err := typ.RowBytes(columns)
	if err != nil {
		return nil, err
	}
	d := &dumper{rows: rows, values: make([]byte, 4*rows*columns)}
	if d.in, err = dev.Alloc(ctx, int64(rows*rowBytes)); err != nil {
		return nil, err
	}
	if d.out, err = dev.Alloc(ctx, int64(len(d.values))); err != nil {
		d.close()
		return nil, err
	}
	buffers := g.Buffers()
	d.step, err = engine.Capture(ctx, dev, compiled, map[int64]runtime.Memory{buffers[0].ID: d.in, buffers[1].ID: d.out})
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *dumper) dump(ctx context.Context, packed []byte, w io.Writer) error {
	if err := d.in.Write(ctx, 0, packed); err != nil {
		return err
	}
	if err := d.step.Run(ctx, nil); err != nil {
		return err
	}
	if err := d.out.Read(ctx, 0, d.values); err != nil {
		return err
	}
	_, err := w.Write(d.values)
	return err
}

// close frees the device memory; a nil dumper has none.
func (d *dumper) close() {
	if d == nil {
		return
	}
	if d.step != nil {
		d.step.Free()
	}
	for _, m := range []runtime.Memory{d.in, d.out} {
		if m != nil {
			m.Free()
		}
	}
}
