package nn

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"tgc/ir"
	"tgc/safetensors"
	"tgc/tensor"
)

// LoadFile puts the tensors of safetensors files straight into the parameters of a compiled
// graph. path is a file, an index of files or a folder: see safetensors.OpenSharded. name
// gives the tensor for a parameter, empty for one that stays as it is; nil: they have the same
// names. Shapes must be equal; floats become the parameter's, rounded where it is shorter,
// other dtypes must be equal. unused are the tensors that no parameter took.
func (p *Parameters) LoadFile(ctx context.Context, f *tensor.Function, path string, name func(parameter string) string) (unused []string, err error) {
	files, err := safetensors.OpenSharded(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := files.Close(); err == nil {
			err = e
		}
	}()
	left := make(map[string]bool)
	for _, tensor := range files.Names() {
		left[tensor] = true
	}
	err = p.eachUsed(f, func(v Parameter) error {
		from := v.Name
		if name != nil {
			from = name(v.Name)
		}
		if from == "" {
			return nil
		}
		t, ok := files.Tensor(from)
		if !ok {
			return fmt.Errorf("nn: %s: parameter %q: there is no tensor %q", path, v.Name, from)
		}
		delete(left, from)
		data, err := v.converted(t)
		if err != nil {
			return fmt.Errorf("nn: %s: parameter %q from %q: %w", path, v.Name, from, err)
		}
		return f.Write(ctx, v.Name, data)
	})
	return slices.Sorted(maps.Keys(left)), err
}

// converted are the elements of a file's tensor as the parameter holds them.
func (v Parameter) converted(t *safetensors.Tensor) ([]byte, error) {
	to, shape := v.Tensor.DType(), t.Shape
	from, known := ourTypes()[t.DType]
	switch {
	case !slices.Equal(shape, v.Shape):
		return nil, fmt.Errorf("got %s%v, want %s%v", t.DType, shape, to, v.Shape)
	case known && from == to:
		return t.Data, nil
	case !known || !from.IsFloat() || !to.IsFloat():
		return nil, fmt.Errorf("got %s, want %s", t.DType, to)
	}
	out := make([]byte, 0, len(t.Data)/from.Size()*to.Size())
	for i := 0; i < len(t.Data); i += from.Size() {
		var word [8]byte
		copy(word[:], t.Data[i:i+from.Size()])
		value := ir.FloatFromBits(from, binary.LittleEndian.Uint64(word[:]))
		bits := binary.LittleEndian.AppendUint64(nil, ir.FloatBits(to, ir.RoundFloat(to, value)))
		out = append(out, bits[:to.Size()]...)
	}
	return out, nil
}
