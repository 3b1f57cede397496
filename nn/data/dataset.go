package data

import (
	"encoding/binary"
	"fmt"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// Dataset is samples with numbers from 0 on.
type Dataset interface {
	// Len is the number of samples.
	Len() int
	// Batch holds these samples in this order: for each input of a model a value whose first
	// axis counts them. Loaders call it from several goroutines at once.
	Batch(samples []int) (nn.Values, error)
}

// Column is an input's values of all samples of a Table.
type Column struct {
	name   string
	dtype  ir.DType
	shape  []int // of one sample
	values int   // in all
	encode func(to []byte, first, end int) ([]byte, error)
}

// Of makes a column of values one after the other; shape is that of one sample, none for a
// scalar. The values are not copied and must not change.
func Of[T tensor.Element](name string, values []T, shape ...int) Column {
	encode := func(to []byte, first, end int) ([]byte, error) {
		return binary.Append(to, binary.LittleEndian, values[first:end])
	}
	return Column{name: name, dtype: tensor.DTypeOf[T](), shape: shape, values: len(values), encode: encode}
}

// Table is a dataset in memory: columns of equally many samples.
type Table []Column

// Len is the number of samples of the first column.
func (t Table) Len() int {
	if len(t) == 0 {
		return 0
	}
	return t[0].samples()
}

func (c Column) samples() int { return c.values / max(lists.Product(c.shape), 1) }

// check reports columns that do not fit each other.
func (t Table) check() error {
	for _, c := range t {
		if each := lists.Product(c.shape); each < 1 || c.values != t.Len()*each {
			return fmt.Errorf("data: column %q has %d values for samples of shape %v, want %d samples as column %q has",
				c.name, c.values, c.shape, t.Len(), t[0].name)
		}
	}
	return nil
}

// Batch gathers samples.
func (t Table) Batch(samples []int) (nn.Values, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	batch := make(nn.Values, len(t))
	for _, c := range t {
		each := lists.Product(c.shape)
		raw := make([]byte, 0, len(samples)*each*c.dtype.Size())
		for _, i := range samples {
			var err error
			if raw, err = c.encode(raw, i*each, (i+1)*each); err != nil {
				return nil, fmt.Errorf("data: column %q: %w", c.name, err)
			}
		}
		batch[c.name] = nn.Value{DType: c.dtype, Shape: append([]int{len(samples)}, c.shape...), Data: raw}
	}
	return batch, nil
}

// Windows is pieces of a text of tokens: sample i is Length tokens from i*Stride on.
type Windows struct {
	Name   string // of the input, [batch, Length]
	Tokens []int32
	Length int
	Stride int // 0 for Length
}

func (w Windows) stride() int {
	if w.Stride > 0 {
		return w.Stride
	}
	return max(w.Length, 1)
}

// Len is the number of whole windows.
func (w Windows) Len() int {
	if w.Length < 1 || len(w.Tokens) < w.Length {
		return 0
	}
	return (len(w.Tokens)-w.Length)/w.stride() + 1
}

// Batch gathers windows.
func (w Windows) Batch(samples []int) (nn.Values, error) {
	var tokens []int32
	for _, i := range samples {
		tokens = append(tokens, w.Tokens[i*w.stride():][:w.Length]...)
	}
	return Table{Of(w.Name, tokens, w.Length)}.Batch(lists.Upto(len(samples)))
}

// Func is a dataset that is computed.
type Func struct {
	Samples int
	Make    func(samples []int) (nn.Values, error) // see Dataset.Batch
}

// Len is Samples.
func (f Func) Len() int { return f.Samples }

// Batch is Make's.
func (f Func) Batch(samples []int) (nn.Values, error) { return f.Make(samples) }
