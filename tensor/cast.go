package tensor

import "tgc/ir"

// Cast converts values to a dtype: floats to integers truncate (out of range
// saturates, NaN gives 0), integers wrap, to Bool is t != 0, to floats rounds to
// nearest even.
func (t *Tensor) Cast(dtype ir.DType) *Tensor {
	if !t.ok() || t.DType() == dtype {
		return t
	}
	if dtype.Size() == 0 {
		return t.graph.fail("", "%s to %s; want a dtype that memory can hold", t, dtype)
	}
	return t.make(ir.OpCast, dtype, nil)
}

// words are the unsigned integers by size in bytes.
var words = map[int]ir.DType{1: ir.U8, 2: ir.U16, 4: ir.U32, 8: ir.U64}

// Bitcast reads the same bits as another dtype. One of another size changes the
// last axis, little-endian: f32 [.. n] is u8 [.. 4n], and back.
func (t *Tensor) Bitcast(dtype ir.DType) *Tensor {
	if !t.ok() || t.DType() == dtype {
		return t
	}
	from, to := t.DType().Size(), dtype.Size()
	switch {
	case from == 0 || to == 0 || t.DType() == ir.Bool && to != 1:
		return t.graph.fail("bitcast", "%s as %s", t, dtype)
	case from == to:
		return t.make(ir.OpBitcast, dtype, nil)
	case t.Rank() == 0 || from < to && t.Extent(-1)%(to/from) != 0:
		return t.graph.fail("bitcast", "%s as %s of %d bytes: the last axis does not fit", t, dtype, to)
	case from > to:
		return t.splitWords(words[from], words[to]).Bitcast(dtype)
	}
	return t.joinWords(words[from], words[to]).Bitcast(dtype)
}

// splitWords reads each word as several smaller ones.
func (t *Tensor) splitWords(large, small ir.DType) *Tensor {
	parts := large.Size() / small.Size()
	shape := append(t.Shape()[:t.Rank()-1], t.graph.Dims(t.Extent(-1)*parts)...)
	return t.Bitcast(large).Unsqueeze(-1).Shr(t.graph.bitOffsets(large, small)).Cast(small).ReshapeDims(shape...)
}

// joinWords reads several words as a larger one.
func (t *Tensor) joinWords(small, large ir.DType) *Tensor {
	parts := large.Size() / small.Size()
	shape := append(t.Shape()[:t.Rank()-1], t.graph.Dims(t.Extent(-1)/parts, parts)...)
	return t.Bitcast(small).ReshapeDims(shape...).Cast(large).Shl(t.graph.bitOffsets(large, small)).Sum(-1)
}

// bitOffsets is where each small word starts in a large one.
func (g *Graph) bitOffsets(large, small ir.DType) *Tensor {
	n := g.Dims(large.Size() / small.Size())[0]
	return g.Iota(large, n).MulScalar(float64(small.Bits()))
}
