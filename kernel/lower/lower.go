package lower

import (
	"fmt"
	"sort"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
	"tgc/packed"
)

// Lower writes the program of a shaped kernel: a prologue, which runs once per
// worker, and a grid loop over the flat work units. The name is "kernel"; who has a
// better one sets Program.Name.
//
// What a plan asks for and a target cannot do is found deep in the recursion; it
// is carried here by a panic of its own type, which fail makes.
func Lower(k *shape.Kernel) (p *program.Program, err error) {
	l, err := newLowerer(k)
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

// lowerer writes one program.
type lowerer struct {
	*shape.Kernel
	matrices map[*ir.UOp]*matrixSum
	b        *program.Builder
	free     *plan.FreeSets

	extent []int64 // of each range; 0 where it is symbolic
	vector plan.RangeSet
	lanes  plan.RangeSet
	copies plan.RangeSet
	bits   []bitField // of vector ranges, for memo keys

	stack    []*scope
	prologue *program.Block
	params   map[*ir.UOp]*program.Value // PARAM, TABLE, VAR
	align    map[*program.Value]int64   // proven, of buffers and stack arrays
	reduces  map[int][]*ir.UOp          // REDUCE nodes by range, outer first
	below    map[*ir.UOp]map[*ir.UOp]bool
	pure     map[*ir.UOp]bool // static memo
	address  map[*ir.UOp]*flatAddress
	paddings map[*ir.UOp]padding // of STAGEs
	arrays   map[memoKey]*program.Value
	linear   *ir.Linearizer
	floats   map[*program.Value]float64 // scalar float constants

	ints        map[*program.Value]int64 // constants, by value or vector
	widths      map[*ir.UOp]*width
	pending     map[*ir.UOp]bool
	uses        map[*ir.UOp]int
	ptrDepths   map[*program.Value]int
	threads     plan.RangeSet
	digits      map[int]threadDigit // of thread ranges
	blockSize   int64               // threads
	tid         *program.Value      // flat index of this thread, I64
	filled      bool                // the stages in front of the rows
	threadParts map[threadDigit]*program.Value
	shared      int64             // bytes
	loopSums    int               // accumulated in the innermost loop being opened
	accesses    map[int][]*ir.UOp // of PARAMs, by slot
	fragments   map[fragmentKey][]*program.Value
}

func newLowerer(p *shape.Kernel) (*lowerer, error) {
	free, err := plan.NewFreeSets(p.Ranges)
	if err != nil {
		return nil, err
	}
	matrices, err := matrixSums(p, free)
	if err != nil {
		return nil, err
	}
	l := &lowerer{Kernel: p, matrices: matrices, b: program.NewBuilder("kernel"), free: free,
		params: make(map[*ir.UOp]*program.Value), align: make(map[*program.Value]int64),
		reduces: make(map[int][]*ir.UOp), pure: make(map[*ir.UOp]bool),
		address: make(map[*ir.UOp]*flatAddress), paddings: make(map[*ir.UOp]padding), arrays: make(map[memoKey]*program.Value),
		linear: ir.NewLinearizer(p.Arena), floats: make(map[*program.Value]float64),
		ints: make(map[*program.Value]int64), widths: make(map[*ir.UOp]*width), pending: make(map[*ir.UOp]bool),
		fragments: make(map[fragmentKey][]*program.Value), threadParts: make(map[threadDigit]*program.Value),
		uses: make(map[*ir.UOp]int), ptrDepths: make(map[*program.Value]int)}
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
		l.bits = append(l.bits, field)
	}
	if offset > 128 {
		return nil, fmt.Errorf("kernel: plan: too many copies and lanes (%d bits of coordinates, at most 128)", offset)
	}
	l.collectReduces()
	if err := l.placeThreads(); err != nil {
		return nil, err
	}
	return l, nil
}

// collectReduces groups the REDUCE nodes by range and notes which contains
// which: a loop is shared only by reduces that do not need each other.
func (l *lowerer) collectReduces() {
	for _, u := range plan.Preorder(l.Sink) {
		if u.Op == ir.OpReduce {
			i := l.free.Index.Of(u.ReduceRange())
			l.reduces[i] = append(l.reduces[i], u)
		}
	}
	l.below = make(map[*ir.UOp]map[*ir.UOp]bool)
	sets := make(map[*ir.UOp]map[*ir.UOp]bool)
	for _, u := range ir.Toposort(l.Sink) {
		for _, s := range u.Src {
			l.uses[s]++
		}
		var merged map[*ir.UOp]bool
		owned := false
		for _, s := range u.Src {
			merged, owned = mergeSets(merged, sets[s], owned)
		}
		if u.Op == ir.OpReduce {
			l.below[u] = merged
			merged, _ = mergeSets(merged, map[*ir.UOp]bool{u: true}, owned)
		}
		sets[u] = merged
	}
}

// mergeSets is the union; it copies only when both sides have something to add.
func mergeSets(x, y map[*ir.UOp]bool, owned bool) (map[*ir.UOp]bool, bool) {
	if len(y) == 0 {
		return x, owned
	}
	if len(x) == 0 {
		return y, false
	}
	if !owned {
		c := make(map[*ir.UOp]bool, len(x)+len(y))
		for k := range x {
			c[k] = true
		}
		x = c
	}
	for k := range y {
		x[k] = true
	}
	return x, true
}

// run writes parameters, prologue and grid loop.
func (l *lowerer) run() {
	l.prologue = l.b.Block()
	l.stack = []*scope{newScope(l.prologue)}
	l.makeParams()
	l.openBlock()
	var grid []int
	for i := range l.Ranges {
		if l.Roles[i] == plan.Grid {
			grid = append(grid, i)
		}
	}
	grid = l.gridOrder(grid)
	units := make([]int64, len(grid))
	for k, i := range grid {
		units[k] = l.extent[i]
	}
	if len(units) == 0 {
		units = []int64{1}
	}
	l.b.SetGrid(units...)
	unit, body := l.b.BeginGrid()
	if l.onGPU() {
		l.stack[0].block = body // a block has one work unit: nothing is shared by several
		l.b.Emit(program.Instr{Op: program.WaitGrid})
	}
	s := newScope(body)
	l.stack = append(l.stack, s)
	l.gridCoordinates(s, unit, grid)
	l.emitStores(l.Stores, 0, l.startCoords())
	l.b.EndGrid(body)
}

// gridOrder puts grid ranges in the loop order of the first store.
func (l *lowerer) gridOrder(grid []int) []int {
	position := make(map[int]int)
	for k, r := range l.Stores[0].Node.Ranges() {
		position[l.free.Index.Of(r)] = k
	}
	sort.Slice(grid, func(x, y int) bool { return position[grid[x]] < position[grid[y]] })
	return grid
}

// gridCoordinates takes the flat work unit apart, the last axis fastest.
func (l *lowerer) gridCoordinates(s *scope, unit *program.Value, grid []int) {
	rest := unit
	for k := len(grid) - 1; k >= 0; k-- {
		i := grid[k]
		s.binds.Add(i)
		if k == 0 {
			s.index[i] = l.longFirst(i, rest)
			break
		}
		n := l.b.Index(l.extent[i])
		s.index[i] = l.longFirst(i, l.indexMod(rest, n))
		rest = l.indexDiv(rest, n)
	}
}

// makeParams declares buffers by slot, then VARs by name.
func (l *lowerer) makeParams() {
	var buffers, vars []*ir.UOp
	read, written := make(map[*ir.UOp]bool), make(map[*ir.UOp]bool)
	for _, u := range ir.Toposort(l.Sink) {
		switch u.Op {
		case ir.OpParam:
			buffers = append(buffers, u)
		case ir.OpVar:
			vars = append(vars, u)
		case ir.OpLoad, ir.OpField:
			read[u.Src[0]] = true
		case ir.OpStore:
			written[u.Src[0]] = true
		}
	}
	sort.Slice(buffers, func(i, j int) bool {
		return buffers[i].Arg.(ir.ParamArg).Slot < buffers[j].Arg.(ir.ParamArg).Slot
	})
	sort.Slice(vars, func(i, j int) bool { return vars[i].Arg.(ir.VarArg).Name < vars[j].Arg.(ir.VarArg).Name })
	for i, u := range buffers {
		arg := u.Arg.(ir.ParamArg)
		if i > 0 && buffers[i-1].Arg.(ir.ParamArg).Slot == arg.Slot {
			fail("slot %d has two PARAM nodes", arg.Slot)
		}
		elem := u.DType
		if arg.Format != "" {
			elem = ir.U8
		}
		align := readAlign
		if written[u] {
			align = writeAlign
		}
		v := l.b.Buffer(arg.Slot, elem, fmt.Sprintf("p%d", arg.Slot), align, l.paramBytes(u))
		l.b.Access(v, read[u], written[u])
		if l.onGPU() {
			l.b.Mark(v, arg.Format != "", l.Preload[arg.Slot])
		}
		l.params[u] = v
		l.align[v] = int64(align)
	}
	for _, u := range vars {
		l.params[u] = l.b.Var(u.Arg.(ir.VarArg).Name)
	}
}

// Buffers that a kernel writes are the engine's own; one that it only reads may
// lie in a mapped GGUF file, whose tensors are aligned to 32 bytes.
const (
	readAlign  = 32
	writeAlign = 64
)

// paramBytes is an upper bound of a buffer's size.
func (l *lowerer) paramBytes(u *ir.UOp) int64 {
	elems := int64(1)
	for _, n := range u.Src {
		hi := l.Bounds.Of(n).Hi
		var ok bool
		if elems, ok = ir.CheckedMul(elems, max(hi, 0)); !ok || hi == ir.PosInf {
			fail("slot %d: extent %d has no upper bound", u.Arg.(ir.ParamArg).Slot, hi)
		}
	}
	name := u.Arg.(ir.ParamArg).Format
	if name == "" {
		return elems * int64(max(u.DType.Size(), 1))
	}
	f := l.format(name)
	if l.Desc.Planes {
		row := l.Bounds.Of(u.Src[len(u.Src)-1]).Hi
		return packed.Planes.Place(f, elems/max(row, 1), row/int64(f.BlockElems)).Bytes
	}
	return elems / int64(f.BlockElems) * int64(f.BlockBytes)
}

func (l *lowerer) format(name string) *packed.Format {
	f, ok := packed.Lookup(name)
	if !ok || f.IsPlain() {
		fail("no packed format %q", name)
	}
	return f
}
