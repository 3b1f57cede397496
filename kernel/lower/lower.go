package lower

import (
	"slices"
	"sort"

	"tgc/internal/lists"
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
	if l.block.cluster > 1 {
		units = append(units, l.block.cluster)
	}
	l.b.SetGrid(units...)
	unit, body := l.b.BeginGrid()
	if l.block.onGPU() {
		l.scopes.stack[0].block = body // a block has one work unit: nothing is shared by several
		unit = l.block.openCluster(unit)
		l.b.Emit(program.Instr{Op: program.WaitGrid})
		l.block.trigger("wait")
	}
	s := newScope(body)
	l.scopes.stack = append(l.scopes.stack, s)
	l.gridCoordinates(s, unit, grid)
	l.stores.emitStores(l.Stores, 0, l.scopes.startCoords())
	l.b.EndGrid(body)
}

// gridOrder puts grid ranges in the loop order of the first store; of a GPU those first towards whose end loops are longer, so that
// all of the longest start first.
func (l *lowering) gridOrder(grid []int) []int {
	position := make(map[int]int)
	for k, r := range l.Stores[0].Node.Ranges() {
		position[l.free.Index.Of(r)] = k
	}
	for _, i := range grid {
		if l.block.onGPU() && l.Rising.Has(i) {
			position[i] -= len(position)
		}
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
