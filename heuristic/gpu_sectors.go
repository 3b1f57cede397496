package heuristic

import (
	"tgc/ir"
	"tgc/packed"
)

// sectorBytes is what a load brings at least from the L2 cache: NVIDIA GPUs move sectors
// of lines.
const sectorBytes = 32

// streamedBytes is the narrowest load that is not kept in the L1 cache.
const streamedBytes = 16

// lanesOfAxis are lanes of a warp along an axis, so many points apart.
type lanesOfAxis struct {
	axis  int
	count int64
	apart int64
}

// sectors is how many bytes the loads of a warp bring for each that they use: lanes whose
// loads lie apart share no sectors. What a thread reads beside it in its next load is
// brought again, since weights are not kept in the L1 cache, but for narrow loads.
func (c *mapped) sectors(w *operand) float64 {
	f, ok := packed.Lookup(w.param.Arg.(ir.ParamArg).Format)
	if !ok || f.IsPlain() || !c.desc.Planes {
		return 1
	}
	brought, used := 0.0, 0.0
	seen := make(map[string]bool)
	for _, u := range w.accesses {
		field, ok := f.Field(u.Arg.(ir.FieldArg).Field)
		if !ok || seen[field.Name] {
			continue
		}
		seen[field.Name] = true
		weight := float64(field.Count * field.DType.Size())
		brought += weight * c.sectorsOf(w, u, field)
		used += weight
	}
	return brought / used
}

// sectorsOf is the same of one field.
func (c *mapped) sectorsOf(w *operand, u *ir.UOp, field *packed.Field) float64 {
	size := int64(field.DType.Size())
	width := size
	if inner := c.byteAxis(w); c.fieldStep(u, inner, field) == size {
		width = min(size*max(c.taken[inner], 1), streamedBytes)
	}
	if width < streamedBytes {
		return 1
	}
	offsets := []int64{0}
	for _, l := range c.warp {
		step, from := l.apart*c.fieldStep(u, l.axis, field), offsets
		for i := int64(1); i < l.count; i++ {
			for _, at := range from {
				offsets = append(offsets, at+i*step)
			}
		}
	}
	sectors, bytes := make(map[int64]bool), make(map[int64]bool)
	for _, at := range offsets {
		for b := range width {
			sectors[(at+b)/sectorBytes], bytes[at+b] = true, true
		}
	}
	return float64(len(sectors)*sectorBytes) / float64(len(bytes))
}

// fieldStep is by how many bytes the place of an access to a field moves along an axis.
func (a *analysis) fieldStep(u *ir.UOp, axis int, field *packed.Field) int64 {
	key := stepOf{u, axis}
	step, ok := a.steps[key]
	if !ok {
		step = a.newFieldStep(u, axis, field)
		a.steps[key] = step
	}
	return step
}

// stepOf is an access and an axis.
type stepOf struct {
	access *ir.UOp
	axis   int
}

func (a *analysis) newFieldStep(u *ir.UOp, axis int, field *packed.Field) int64 {
	step, indices := int64(0), u.Indices()
	for _, x := range indices[len(indices)-2:] { // the block of a row and the element of the field
		x0, ok0 := a.evaluate(x, -1)
		x1, ok1 := a.evaluate(x, axis)
		if !ok0 || !ok1 {
			x0, x1 = 0, 0
		}
		step = step*int64(field.Count) + x1 - x0
	}
	return step * int64(field.DType.Size())
}
