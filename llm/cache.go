package llm

import (
	"fmt"
	"strings"

	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// CacheType is what the keys and values of earlier tokens are kept as.
type CacheType uint8

// The types of a cache. What is lost is a number's error as a part of the largest of its group.
const (
	CacheF32 CacheType = iota // 4 bytes a number, as they were computed
	CacheF16                  // 2 bytes, within 2^-12 of each number
	CacheQ8                   // 1.06 bytes: integers with an f16 scale for each 32 neighbours, within 1/250 of the largest of them
)

var cacheNames = []string{CacheF32: "f32", CacheF16: "f16", CacheQ8: "q8_0"}

// String is the type's name on the command line.
func (t CacheType) String() string { return cacheNames[t] }

// CacheTypes lists the types' names, the exact one first.
func CacheTypes() []string { return append([]string(nil), cacheNames...) }

// ParseCacheType is the inverse of String.
func ParseCacheType(name string) (CacheType, error) {
	for t, s := range cacheNames {
		if s == name {
			return CacheType(t), nil
		}
	}
	return CacheF32, fmt.Errorf("llm: cache type %q: want %s", name, strings.Join(cacheNames, ", "))
}

// cache holds keys or values of a layer.
type cache struct {
	numbers *tensor.Tensor // [B, KV, ctx, D]
	scales  *tensor.Tensor // [B, KV, ctx, D/group] (f16): of groups of neighbours; nil: 1
}

// newCache makes the buffers of a cache of a type: [B, KV, ctx, D].
func newCache(g *tensor.Graph, name string, t CacheType, shape ...int) cache {
	element := map[CacheType]ir.DType{CacheF32: ir.F32, CacheF16: ir.F16, CacheQ8: ir.I8}[t]
	c := cache{numbers: g.Input(name, element, shape...)}
	if t == CacheQ8 {
		last := len(shape) - 1
		groups := shape[last] / nn.GroupSize(shape[last])
		c.scales = g.Input(name+".scale", ir.F16, append(shape[:last:last], groups)...)
	}
	return c
}

// rows are how many positions the cache has.
func (c cache) rows() int { return c.numbers.Extent(2) }

// store puts x [B, T, KV, D] in the rows [B, T] of the cache.
func (c cache) store(x, rows *tensor.Tensor) cache {
	switch c.numbers.DType() {
	case ir.F16:
		return cache{numbers: storeRows(c.numbers, nn.ToHalf(x), rows)}
	case ir.I8:
		numbers, scales := nn.Int8Groups(x)
		return cache{storeRows(c.numbers, numbers, rows), storeRows(c.scales, nn.ToHalf(scales), rows)}
	}
	return cache{numbers: storeRows(c.numbers, x, rows)}
}

// storeRows assigns x [B, T, KV, D] to rows [B, T] of a buffer [B, KV, ctx, D].
func storeRows(buffer, x, rows *tensor.Tensor) *tensor.Tensor {
	g := buffer.Graph()
	b, t, heads, d := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	one := g.Dims(1)[0]
	along := func(axis int, n *ir.UOp) *tensor.Tensor {
		shape := []*ir.UOp{one, one, one, one}
		shape[axis] = n
		return g.Iota(ir.I32, n).ReshapeDims(shape...)
	}
	next := buffer.AssignAt(x, along(0, b), along(2, heads), rows.ReshapeDims(b, t, one, one), along(3, d))
	g.Keep(next)
	return next
}

// read gives what the rows that visible picks of axis 2 hold: [B, KV, length, D], of f16 or f32.
func (c cache) read(visible func(*tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	numbers := visible(c.numbers)
	if c.scales == nil {
		return numbers
	}
	return nn.ScaleGroups(numbers, visible(c.scales))
}
