package heuristic

import (
	"fmt"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/kernel/plan"
)

// Transposes: what is stored side by side along one axis is read side by side along
// another. Lanes along both make tiles: short loads along the one, which shuffles turn
// into vectors along the other. A work unit has a cache line of what it reads, at least.
//
// One Zen 5 core, f32, runs of 16 bytes, 4 tiles a unit: 2048 x 2048 1.2 ms (27 with
// gathered lanes), 512 x 512 27 us (260); runs of 64 bytes 1.2 ms and 37 us, and a GELU
// of what is read takes twice as long, because its values no longer fit the registers.
//
// One Zen 4 core, runs of 64 bytes to 1 KB of what is read, us: 2048 x 2048 1.93 to 1.45 ms, 2047 x 2049, whose rows begin
// anywhere in a line, 2.75 to 1.9 ms.
const (
	tileRun    = 16   // bytes
	tileUnit   = 64   // bytes of a unit's run, at least
	longUnit   = 1024 // where units are many
	fewestTile = 2    // points that an axis must have to be lanes of a tile
)

// transposedAxis is the store axis along which loads are contiguous that stride along the
// axis of the lanes; -1: there is none.
func (a *analysis) transposedAxis(lanes int) int {
	for _, u := range a.order {
		if j := a.turned(u, lanes); j >= 0 {
			return j
		}
	}
	return -1
}

// turned is the axis along which a load that strides along the lanes is contiguous.
func (a *analysis) turned(u *ir.UOp, lanes int) int {
	if u.Op != ir.OpLoad || !isAccess(u) || !a.dependsByIndex(u, lanes) {
		return -1
	}
	if n := a.stride(u, lanes); n >= -1 && n <= 1 {
		return -1
	}
	return lists.First(a.axesOf(plan.StoreAxis), func(j int) bool {
		return j != lanes && a.tileable(j) && a.size(j)*int64(u.DType.Size()) >= tileRun && a.stride(u, j) == 1
	}, -1)
}

// turnedBytes is the size of the largest elements that are read along one axis and stored along another.
func (a *analysis) turnedBytes(stored, read int) int64 {
	size := int64(1)
	for _, u := range a.order {
		if a.turned(u, stored) == read {
			size = max(size, int64(u.DType.Size()))
		}
	}
	return size
}

// tileable reports a store axis of which a tile can have lanes.
func (a *analysis) tileable(i int) bool {
	return a.constant(i) && a.laneSafe(i) && a.size(i) >= fewestTile && a.everyStore(i)
}

// transposedTile takes lanes of both axes: i, along which is stored, and j.
func (p *planner) transposedTile(i, j int) string {
	size := p.turnedBytes(i, j)
	lanes := p.anyLanes(p.size(i), lanesOf(p.desc))
	p.split(plan.VECTOR, i, lanes)
	elements := tileRun / size
	p.split(plan.VECTOR, j, elements)
	tiles := p.leftAlong(p.axesOf(plan.StoreAxis)) / elementwiseUnits
	p.split(plan.ROLL, j, run(p.left(j), max(min(tiles, longUnit/tileRun), tileUnit/tileRun)))
	p.done[i], p.done[j] = true, true
	return fmt.Sprintf("tiles of %d lanes of %s x %d of %s", lanes, p.axes[i].Name, elements, p.axes[j].Name)
}

// Transposes of a GPU: neighbouring threads run along both axes, so that what a block reads
// side by side and what it writes are whole lines or sectors; a thread has a few elements
// along each, of which it loads vectors along the one and stores vectors along the other.
// H200, f32: 2048 x 2048 6 us (33 with threads along what is stored alone), 2047 x 2049,
// where extents leave no vectors, 12 (29).
const (
	gpuTileRow     = 8  // threads along what is stored side by side
	gpuTileColumn  = 16 // along what is read side by side
	gpuTileVector  = 8  // elements of a thread along an axis, of up to 16 bytes
	gpuTileLoadsOf = 4  // loads of a thread in flight, where extents leave no vectors
)

// gpuTransposed shares a tile of both axes: i, along which is stored, and j.
func (p *planner) gpuTransposed(i, j int) string {
	size := p.turnedBytes(i, j)
	vector := min(gpuTileVector, tileRun/size)
	p.split(plan.VECTOR, i, powerOfTwoDivisor(p.size(i), vector))
	lanes := max(p.taken[i], 1)
	// As many elements of a thread as leave each multiprocessor a block.
	most := powerOfTwo(p.points(p.axesOf(plan.StoreAxis))/(lanes*gpuBlockThreads*int64(p.desc.Cost.Workers)), 1, max(vector, gpuTileLoadsOf))
	p.split(plan.VECTOR, j, powerOfTwoDivisor(p.size(j), min(vector, most)))
	p.split(plan.LOCAL, i, powerOfTwo(2*p.left(i)-1, 1, gpuTileRow))
	p.split(plan.LOCAL, j, powerOfTwo(2*p.left(j)-1, 1, gpuTileColumn))
	if lanes == 1 {
		p.split(plan.UPCAST, j, p.copiesOf(j, min(gpuTileLoadsOf, most)))
	}
	p.done[i], p.done[j] = true, true
	return fmt.Sprintf("tiles of %d of %s x %d of %s a block", p.taken[i], p.axes[i].Name, p.taken[j], p.axes[j].Name)
}
