package lower

import (
	"fmt"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
)

// lowering is what the parts of the lowering of one kernel share: the kernel, the
// program that is written, and the sets of its ranges. Each part owns what only it
// knows; the parts call each other through it.
type lowering struct {
	*shape.Kernel
	b      *program.Builder
	free   *analyse.FreeSets
	extent []int64          // of each range; 0 where it is symbolic
	vector analyse.RangeSet // ranges that are lanes or unrolled
	lanes  analyse.RangeSet
	copies analyse.RangeSet // unrolled
	others []*ir.UOp        // weights that the reduces of the open loops leave to loops of their own (apart.go)

	scopes *scopes
	exprs  *expressions
	wide   *widener
	loops  *reducer
	tuples *tuples
	folds  *folder
	memory *memory
	words  *wordMemory
	stores *storer
	stager *stager
	block  *threads
	mma    *matrices
	tiles  *tiles
}

// points is how many there are along some ranges.
func (l *lowering) points(ranges []int) int64 {
	return lists.Product(lists.Map(ranges, func(i int) int64 { return l.extent[i] }))
}

func newLowering(p *shape.Kernel) (*lowering, error) {
	free, err := analyse.NewFreeSets(p.Ranges)
	if err != nil {
		return nil, err
	}
	sums, err := matrixSums(p, free)
	if err != nil {
		return nil, err
	}
	l := &lowering{Kernel: p, b: program.NewBuilder("kernel"), free: free}
	l.scopes = &scopes{lowering: l}
	l.exprs = &expressions{lowering: l, chosen: make(map[*program.Value][]*program.Value), pure: make(map[*ir.UOp]bool), floats: make(map[*program.Value]float64),
		ints: make(map[*program.Value]int64), pending: make(map[*ir.UOp]bool)}
	l.wide = &widener{lowering: l, widths: make(map[*ir.UOp]*width), uses: make(map[*ir.UOp]int)}
	l.loops = &reducer{lowering: l, reduces: make(map[int][]*ir.UOp)}
	l.tuples, l.folds, l.words, l.stores = &tuples{l}, &folder{l}, &wordMemory{l}, &storer{l}
	l.memory = &memory{lowering: l, params: make(map[*ir.UOp]*program.Value), align: make(map[*program.Value]int64),
		address: make(map[*ir.UOp]*flatAddress), linear: ir.NewLinearizer(p.Arena), ptrDepths: make(map[*program.Value]int)}
	l.stager = &stager{lowering: l, paddings: make(map[*ir.UOp]padding), arrays: make(map[memoKey]*program.Value)}
	l.block = &threads{lowering: l, threadParts: make(map[threadSubAxis]*program.Value)}
	l.mma = &matrices{lowering: l, sums: sums, chains: make(map[chainKey]*matrixChain), fragments: make(map[fragmentKey][]*program.Value), scaled: make(map[scaledKey]*program.Value), offsets: make(map[offsetKey][]*program.Value)}
	l.tiles = &tiles{lowering: l, sums: make(map[tileKey]*program.Value)}
	offset := uint(0)
	for i, r := range p.Ranges {
		n, _ := r.Src[0].Int()
		l.extent = append(l.extent, n)
		var first uint
		switch p.Roles[i] {
		case plan.Lane:
			l.lanes.Add(i)
		case plan.Unroll:
			l.copies.Add(i)
		}
		if p.Roles[i] == plan.Lane || p.Roles[i] == plan.Unroll {
			l.vector.Add(i)
			first, offset = placeBits(offset, n)
		}
		l.scopes.bits = append(l.scopes.bits, first)
	}
	if offset > 128 {
		return nil, fmt.Errorf("kernel: plan: too many copies and lanes (%d bits of coordinates, at most 128)", offset)
	}
	l.loops.collectReduces()
	if err := l.block.placeThreads(); err != nil {
		return nil, err
	}
	return l, nil
}
