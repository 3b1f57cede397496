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
	rows     int
	function *tensor.Function
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
	f, err := tensor.Compile(ctx, g, dev, config)
	return &dumper{rows, f}, err
}

func (d *dumper) dump(ctx context.Context, packed []byte, w io.Writer) error {
	if err := d.function.Write(ctx, "packed", packed); err != nil {
		return err
	}
	if err := d.function.Run(ctx, nil); err != nil {
		return err
	}
	values, err := d.function.Read(ctx, "values")
	if err != nil {
		return err
	}
	_, err = w.Write(values)
	return err
}

// close frees the device memory; a nil dumper has none.
func (d *dumper) close() {
	if d != nil && d.function != nil {
		d.function.Close()
	}
}
