package nn

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"tgc/ir"
	"tgc/safetensors"
)

// fileTypes are the dtypes that a file of values can hold.
var fileTypes = map[ir.DType]safetensors.DType{
	ir.F64: safetensors.F64, ir.F32: safetensors.F32, ir.F16: safetensors.F16, ir.BF16: safetensors.BF16,
	ir.I64: safetensors.I64, ir.I32: safetensors.I32, ir.I16: safetensors.I16, ir.I8: safetensors.I8,
	ir.U64: safetensors.U64, ir.U32: safetensors.U32, ir.U16: safetensors.U16, ir.U8: safetensors.U8,
	ir.Bool: safetensors.BOOL, ir.F8E4M3: safetensors.F8E4M3, ir.F8E5M2: safetensors.F8E5M2,
}

// WriteFile writes values as a safetensors file, which appears under its name
// only when it is complete. The bytes depend on the values and metadata alone.
func (v Values) WriteFile(ctx context.Context, path string, metadata map[string]string) error {
	var list []safetensors.Tensor
	for _, name := range slices.Sorted(maps.Keys(v)) {
		value := v[name]
		dtype, ok := fileTypes[value.DType]
		if !ok {
			return fmt.Errorf("nn: value %q: safetensors has no %s", name, value.DType)
		}
		list = append(list, safetensors.Tensor{Name: name, DType: dtype, Shape: value.Shape, Data: value.Data})
	}
	return safetensors.WriteFile(ctx, path, list, metadata)
}

// ReadValues reads a safetensors file whole, with its metadata.
func ReadValues(path string) (values Values, metadata map[string]string, err error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	types := ourTypes()
	values = make(Values, len(f.Tensors()))
	for _, t := range f.Tensors() {
		dtype, ok := types[t.DType]
		if !ok {
			return nil, nil, fmt.Errorf("nn: %s: value %q is %s, which has no counterpart", path, t.Name, t.DType)
		}
		values[t.Name] = Value{DType: dtype, Shape: slices.Clone(t.Shape), Data: slices.Clone(t.Data)}
	}
	return values, maps.Clone(f.Metadata()), nil
}

// ourTypes are the dtypes of those of files.
func ourTypes() map[safetensors.DType]ir.DType {
	types := make(map[safetensors.DType]ir.DType, len(fileTypes))
	for ours, theirs := range fileTypes {
		types[theirs] = ours
	}
	return types
}
