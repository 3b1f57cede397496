package lower

import (
	"fmt"
	"slices"
	"sort"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
)

// Lower writes the program of a shaped kernel: a prologue, which runs once per
// worker, and a grid loop over the flat work units. The name is "kernel"; who has a
// better one sets Program.Name.
//
// What a plan asks for and a target cannot do is found deep in the recursion; it
// is carried here by a panic of its own type, which fail makes.
func Lower(k *shape.Kernel) (p *program.Program, err error) {
	l, err := newLowering(k)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(lowerError)
			if !ok {
				panic(r)
			}
			p, err = nil, failure.err
		}
	}()
	l.run()
	return l.b.Finish(), nil
}

// lowerError carries an error out of the recursion of lowering to Lower.
type lowerError struct{ err error }

func fail(format string, args ...any) {
	panic(lowerError{fmt.Errorf("kernel: "+format, args...)})
}

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
	l.exprs = &expressions{lowering: l, pure: make(map[*ir.UOp]bool), floats: make(map[*program.Value]float64),
		ints: make(map[*program.Value]int64), pending: make(map[*ir.UOp]bool)}
	l.wide = &widener{lowering: l, widths: make(map[*ir.UOp]*width), uses: make(map[*ir.UOp]int)}
	l.loops = &reducer{lowering: l, reduces: make(map[int][]*ir.UOp)}
	l.tuples, l.folds, l.words, l.stores = &tuples{l}, &folder{l}, &wordMemory{l}, &storer{l}
	l.memory = &memory{lowering: l, params: make(map[*ir.UOp]*program.Value), align: make(map[*program.Value]int64),
		address: make(map[*ir.UOp]*flatAddress), linear: ir.NewLinearizer(p.Arena), ptrDepths: make(map[*program.Value]int)}
	l.stager = &stager{lowering: l, paddings: make(map[*ir.UOp]padding), arrays: make(map[memoKey]*program.Value)}
	l.block = &threads{lowering: l, threadParts: make(map[threadSubAxis]*program.Value)}
	l.mma = &matrices{lowering: l, sums: sums, fragments: make(map[fragmentKey][]*program.Value)}
	offset := uint(0)
	for i, r := range p.Ranges {
		n, _ := r.Src[0].Int()
		l.extent = append(l.extent, n)
		var field bitField
		switch p.Roles[i] {
		case plan.Lane:
			l.lanes.Add(i)
		case plan.Unroll:
			l.copies.Add(i)
		}
		if p.Roles[i] == plan.Lane || p.Roles[i] == plan.Unroll {
			l.vector.Add(i)
			field, offset = placeBits(offset, n)
		}
		l.scopes.bits = append(l.scopes.bits, field)
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

// run writes parameters, prologue and grid loop.
func (l *lowering) run() {
	l.b.SetOptions(l.Options.Program)
	l.scopes.prologue = l.b.Block()
	l.scopes.stack = []*scope{newScope(l.scopes.prologue)}
	l.memory.makeParams()
	l.block.openBlock()
	grid := lists.Filter(lists.Upto(len(l.Ranges)), func(i int) bool { return l.Roles[i] == plan.Grid })
	grid = l.gridOrder(grid)
	units := lists.Map(grid, func(i int) int64 { return l.extent[i] })
	if len(units) == 0 {
		units = []int64{1}
	}
	l.b.SetGrid(units...)
	unit, body := l.b.BeginGrid()
	if l.block.onGPU() {
		l.scopes.stack[0].block = body // a block has one work unit: nothing is shared by several
		l.b.Emit(program.Instr{Op: program.WaitGrid})
		l.block.trigger("wait")
	}
	s := newScope(body)
	l.scopes.stack = append(l.scopes.stack, s)
	l.gridCoordinates(s, unit, grid)
	l.stores.emitStores(l.Stores, 0, l.scopes.startCoords())
	l.b.EndGrid(body)
}

// gridOrder puts grid ranges in the loop order of the first store.
func (l *lowering) gridOrder(grid []int) []int {
	position := make(map[int]int)
	for k, r := range l.Stores[0].Node.Ranges() {
		position[l.free.Index.Of(r)] = k
	}
	sort.Slice(grid, func(x, y int) bool { return position[grid[x]] < position[grid[y]] })
	return grid
}

// gridCoordinates takes the flat work unit apart, the last axis fastest.
func (l *lowering) gridCoordinates(s *scope, unit *program.Value, grid []int) {
	rest := unit
	for k, i := range slices.Backward(grid) {
		s.binds.Add(i)
		if k == 0 {
			s.index[i] = l.longFirst(i, rest)
			break
		}
		n := l.b.Index(l.extent[i])
		s.index[i] = l.longFirst(i, l.exprs.indexMod(rest, n))
		rest = l.exprs.indexDiv(rest, n)
	}
}
