package tensor

import (
	"context"

	"tgc/internal/lists"
)

// Fresh computes tensors of one graph together and gives them as values of a new graph, on
// the same device, without what they were computed from: derivatives end at them.
//
//	for range steps {
//		if x, err = x.MulScalar(0.5).AddScalar(1).Fresh(ctx); err != nil { .. }
//	}
func Fresh(ctx context.Context, tensors ...*Tensor) ([]*Tensor, error) {
	if err := Realize(ctx, tensors...); err != nil {
		return nil, err
	}
	fresh := NewGraph()
	out := make([]*Tensor, len(tensors))
	for i, t := range tensors {
		raw, err := t.Bytes()
		if err != nil {
			return nil, err
		}
		fresh.device = t.graph.device
		out[i] = fresh.FromBytes(t.DType(), raw, lists.Make(t.Rank(), t.Extent)...)
	}
	return out, fresh.err
}

// Fresh is Fresh of one tensor.
func (t *Tensor) Fresh(ctx context.Context) (*Tensor, error) {
	list, err := Fresh(ctx, t)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}
