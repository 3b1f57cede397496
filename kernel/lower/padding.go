package lower

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
)

// Padding of shared arrays. Shared memory has 32 banks of 4 bytes; a warp's
// access takes as many rounds as the most words that its lanes want of one
// bank. Lanes that read neighbouring groups of weights read activations a
// power of two apart, which is the same few banks: four times the rounds. A
// gap of 16 bytes after every so many elements moves the lanes apart. The
// length between gaps is chosen by counting rounds.

const (
	banks      = 32
	widestRead = 16      // bytes of one lane in one instruction
	widestGap  = 64      // bytes between the elements of a panel
	mostApart  = 1 << 14 // elements between gaps
)

// padding is the gaps of a shared array, in elements; zero for none.
type padding struct {
	every, gap int64
	line       int64 // of a panel of a warpgroup's instruction: the elements of a row, which lie in a line of their own; 0: of anything else
}

// of is the index of an element after the gaps before it.
func (p padding) of(a *ir.Arena, index *ir.UOp) *ir.UOp {
	if p.line > 0 {
		row, piece, element := a.Div(index, a.Index(p.line)), a.Div(a.Mod(index, a.Index(p.line)), a.Index(plan.GroupPieces)), a.Mod(index, a.Index(plan.GroupPieces))
		place := a.Binary(ir.OpXor, piece, a.Mod(row, a.Index(plan.LinePieces)))
		return a.Add(a.Add(a.Mul(row, a.Index(plan.LinePieces*plan.GroupPieces)), a.Mul(place, a.Index(plan.GroupPieces))), element)
	}
	if p.every == 0 {
		return index
	}
	return a.Add(index, a.Mul(a.Div(index, a.Index(p.every)), a.Index(p.gap)))
}

// size is the number of elements that an array of n takes.
func (p padding) size(n int64) int64 {
	if p.line > 0 {
		return n / p.line * plan.LinePieces * plan.GroupPieces
	}
	if p.every == 0 {
		return n
	}
	return n + (n-1)/p.every*p.gap
}

// paddingOf chooses the gaps of a stage that threads share: those with the
// fewest rounds over all reads of it, and of a panel over what fills it; none where
// gaps gain nothing.
func (l *stager) paddingOf(stage *ir.UOp) padding {
	if p, ok := l.paddings[stage]; ok {
		return p
	}
	if l.mma.isGroupPanel(stage) {
		l.paddings[stage] = l.groupPadding(stage)
		return l.paddings[stage]
	}
	best := padding{}
	size := int64(stage.DType.Size())
	if l.sharesStage(stage) && size > 0 && size <= widestRead {
		reads, widest := l.stageReads(stage), int64(widestRead)
		if shape.IsSharedTile(stage) { // filled as often as it is read
			reads, widest = append(reads, l.stageWrite(stage)...), widestGap
		}
		fewest := rounds(reads, best, size)
		for every := widestRead / size; every <= mostApart; every *= 2 {
			for gap := int64(widestRead); gap <= widest; gap *= 2 {
				p := padding{every: every, gap: gap / size}
				if n := rounds(reads, p, size); n < fewest {
					best, fewest = p, n
				}
			}
		}
	}
	l.paddings[stage] = best
	return best
}

// stageRead is what the lanes of a warp read in one instruction.
type stageRead struct {
	index []int64 // by lane, in elements
	bytes int64   // of a lane
}

// stageReads evaluates the reads of a stage for the first warp of a block at
// the first point of all loops; reads whose index is not that simple are left
// out.
func (l *stager) stageReads(stage *ir.UOp) []stageRead {
	var out []stageRead
	for _, u := range l.readsOf(stage) {
		index := l.stageIndex(u)
		read := stageRead{bytes: int64(stage.DType.Size())}
		for _, t := range l.memory.linear.Of(l.Simplify.Do(index)).Terms {
			if i, ok := l.free.Index.Get(t.Atom); ok && l.Roles[i] == plan.Lane && t.Coef == 1 {
				read.bytes = min(read.bytes*l.extent[i], widestRead)
			}
		}
		if l.mma.isFragment(u) {
			read.bytes = min(plan.RowCopies*plan.LanePoints*int64(stage.DType.Size()), widestRead)
		}
		if read.index = l.ofLanes(index); read.index != nil {
			out = append(out, read)
		}
	}
	return out
}

// ofLanes is an index for each lane of the first warp; nil where that is not known.
func (l *stager) ofLanes(index *ir.UOp) []int64 {
	list := make([]int64, plan.WarpSize)
	for lane := range list {
		n, ok := l.Simplify.Do(l.Arena.Substitute(index, l.laneValues(index, int64(lane)))).Int()
		if !ok {
			return nil
		}
		list[lane] = n
	}
	return list
}

// stageWrite is how the lanes of a warp fill a stage, at the first point of all loops.
func (l *stager) stageWrite(stage *ir.UOp) []stageRead {
	axes := l.stageAxes(stage)
	write, index := stageRead{bytes: int64(stage.DType.Size())}, l.flatIndex(axes, axes, false)
	for _, z := range slices.Backward(axes) { // what lies side by side
		i := l.free.Index.Of(z)
		if l.Roles[i] != plan.Lane {
			break
		}
		write.bytes *= l.extent[i]
	}
	write.bytes = min(write.bytes, widestRead)
	if write.index = l.ofLanes(index); write.index == nil {
		return nil
	}
	return []stageRead{write}
}

// readsOf lists the reads of a stage; of a factor of matrix instructions, those of
// its fragments.
func (l *stager) readsOf(stage *ir.UOp) []*ir.UOp {
	roots := []*ir.UOp{l.Sink}
	if shape.IsSharedTile(stage) {
		for _, u := range ir.Toposort(l.Sink) {
			if m := l.mma.sums[u]; m != nil {
				for _, t := range m.tiles {
					roots = append(roots, t.product)
				}
			}
		}
	}
	var all, fragments []*ir.UOp
	seen := make(map[*ir.UOp]bool)
	for _, root := range roots {
		for _, u := range ir.Toposort(root) {
			if u.Op != ir.OpLoad || u.Src[0] != stage || seen[u] {
				continue
			}
			seen[u] = true
			all = append(all, u)
			if root != l.Sink {
				fragments = append(fragments, u)
			}
		}
	}
	if len(fragments) > 0 {
		return fragments
	}
	return all
}

// laneValues binds the ranges of an index for a lane of the first warp.
func (l *stager) laneValues(index *ir.UOp, lane int64) map[*ir.UOp]*ir.UOp {
	with := make(map[*ir.UOp]*ir.UOp)
	for _, u := range analyse.RangesIn(index) {
		n := int64(0)
		if i := l.free.Index.Of(u); l.Roles[i].IsThread() {
			n = lane / l.block.subAxes[i].stride % l.block.subAxes[i].extent
		}
		with[u] = l.Arena.Index(n)
	}
	return with
}

// rounds counts the rounds that reads take. A warp that reads more than 4 bytes
// a lane goes in parts of 128 bytes; lanes with the same word share it.
func rounds(reads []stageRead, p padding, size int64) int64 {
	total := int64(0)
	for _, r := range reads {
		lanes := int64(banks*shape.BankBytes) / max(r.bytes, shape.BankBytes)
		for first := int64(0); first < plan.WarpSize; first += lanes {
			words := make(map[int64]bool)
			var inBank [banks]int64
			most := int64(0)
			for _, at := range r.index[first:min(first+lanes, plan.WarpSize)] {
				if p.every > 0 {
					at += at / p.every * p.gap
				}
				for b := at * size; b < at*size+r.bytes; b += shape.BankBytes {
					if w := b / shape.BankBytes; !words[w] {
						words[w] = true
						inBank[w%banks]++
						most = max(most, inBank[w%banks])
					}
				}
			}
			total += most
		}
	}
	return total
}

// groupPadding puts pieces of the same points of neighbouring rows into different banks, as the instruction expects them.
func (l *stager) groupPadding(stage *ir.UOp) padding {
	for _, u := range l.readsOf(stage) {
		if n := l.mma.elementOf(u, map[*ir.UOp]int64{l.Tile.RowLane: 1}) - l.mma.elementOf(u, nil); n > 0 {
			return padding{line: n}
		}
	}
	fail("plan: WGMMA of a factor that is read in no order of rows")
	return padding{}
}
