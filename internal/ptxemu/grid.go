package ptxemu

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Launch says how to run a kernel.
type Launch struct {
	Grid   [3]int   // blocks in x, y, z
	Block  [3]int   // threads in x, y, z
	Shared int      // bytes of dynamic shared memory
	Params [][]byte // little-endian, in order
	Memory *Memory
	Seed   uint64 // of the random order
	// Dependents, where not nil, is called once when every block has executed
	// griddepcontrol.launch_dependents or has ended: from then on the next
	// grid may run ahead of its wait. Its error ends the grid.
	Dependents func() error
	// After, where not nil, is the first of the grids that may not have ended
	// when this one starts. Until a thread of this one has executed
	// griddepcontrol.wait, it may not read what that or a later grid writes and
	// may write nothing. Some thread must wait before the grid ends: else that it
	// has ended would say nothing of those before it.
	After *Grid
	// Globals, where not nil, says where a variable of the module lies, if who loaded the
	// module has placed it. The memory gets a copy of every other one.
	Globals func(name string) (address uint64, ok bool)
}

// Launch runs a kernel to its end.
func (k *Kernel) Launch(ctx context.Context, l Launch) error {
	g, err := k.Start(l)
	if err != nil {
		return err
	}
	return g.Run(ctx)
}

// Grid is a launch under way.
type Grid struct {
	kernel  *Kernel
	launch  Launch
	threads int // a block
	random  *rand.Rand
	order   []int // clusters that have not started, in reverse
	begun   []*cluster
	early   bool // griddepcontrol.wait holds
	globals map[*variable]uint64
	pool    []*cluster
	ready   int    // blocks that triggered or ended
	number  uint32 // of the grid in its memory, from 1
	floor   uint32 // number of Launch.After; 0 without
	waited  bool   // some thread has executed griddepcontrol.wait
}

// block is the state of a block that has started.
type block struct {
	index    [3]int
	rank     int // in its cluster
	peers    *cluster
	warps    []*warp
	shared   *sharedMemory
	products [][]groupOperands // of each warpgroup, in the order that its warps came to
	// triggered: it lets the next grid start.
	triggered bool
}

// Limits of a launch.
const (
	maxThreads = 1024
	maxBlocks  = 1 << 24 // of the interpreter
	maxShared  = 1 << 20
	maxCluster = 8
)

// Check reports a launch that the kernel cannot be started with.
func (k *Kernel) Check(l Launch) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("ptx: kernel %s: %s", k.Name, fmt.Sprintf(format, args...))
	}
	if len(l.Params) != len(k.params) {
		return fail("%d parameters, want %d", len(l.Params), len(k.params))
	}
	for i, p := range l.Params {
		if len(p) != k.ParamSizes[i] {
			return fail("parameter %d has %d bytes, want %d", i, len(p), k.ParamSizes[i])
		}
	}
	blocks, threads := 1, 1
	for axis := range 3 {
		if l.Grid[axis] < 1 || l.Block[axis] < 1 || l.Block[axis] > maxThreads || l.Grid[axis] > maxBlocks/blocks {
			return fail("grid %v of blocks %v", l.Grid, l.Block)
		}
		blocks *= l.Grid[axis]
		threads *= l.Block[axis]
	}
	switch {
	case l.Grid[0]%max(k.Cluster, 1) != 0:
		return fail("%d blocks in clusters of %d", l.Grid[0], k.Cluster)
	case threads > maxThreads || k.MaxThreads > 0 && threads > k.MaxThreads:
		return fail("%d threads a block, want at most %d", threads, min(maxThreads, max(k.MaxThreads, 1)))
	case l.Memory == nil:
		return fail("no memory")
	case l.Shared < 0 || l.Shared+k.Shared > maxShared:
		return fail("%d bytes of dynamic shared memory", l.Shared)
	}
	return nil
}

// Start checks a launch and prepares it; nothing runs yet.
func (k *Kernel) Start(l Launch) (*Grid, error) {
	if err := k.Check(l); err != nil {
		return nil, err
	}
	threads := l.Block[0] * l.Block[1] * l.Block[2]
	g := &Grid{kernel: k, launch: l, threads: threads, random: rand.New(rand.NewPCG(l.Seed, 1))}
	g.order = g.random.Perm(l.Grid[0] * l.Grid[1] * l.Grid[2] / max(k.Cluster, 1))
	l.Memory.grids++
	g.number = l.Memory.grids
	if l.After != nil {
		g.floor = l.After.number
	}
	var err error
	g.globals, err = k.module.place(l.Memory, l.Globals)
	return g, err
}

// place finds out where a module's variables are: where its loader says, else in memory
// of their own, once per memory.
func (m *Module) place(memory *Memory, where func(string) (uint64, bool)) (map[*variable]uint64, error) {
	out := make(map[*variable]uint64)
	for _, v := range m.globals {
		if v.space == "shared" {
			continue
		}
		if where != nil {
			if address, ok := where(v.name); ok {
				out[v] = address
				continue
			}
		}
		address, err := m.own(memory, v)
		if err != nil {
			return nil, err
		}
		out[v] = address
	}
	return out, nil
}

// own puts a variable into memory, unless it is there.
func (m *Module) own(memory *Memory, v *variable) (uint64, error) {
	for _, a := range memory.list {
		if a.variable == v {
			return a.address, nil
		}
	}
	address, err := memory.Alloc(int64(v.size), max(v.align, 1))
	if err != nil {
		return 0, err
	}
	a := memory.find(address)
	a.owner, a.variable = m, v
	content := make([]byte, v.size) // the rest is zero
	copy(content, v.initial)
	if err := memory.Write(address, content); err != nil {
		return 0, err
	}
	a.readOnly = v.space == "const"
	return address, nil
}

// Unload frees a module's variables in a memory.
func (m *Module) Unload(memory *Memory) error {
	for _, a := range slices.Backward(memory.list) {
		if a.owner == m {
			if err := memory.Free(a.address); err != nil {
				return err
			}
		}
	}
	return nil
}

// Early runs up to count blocks (or clusters), each to its griddepcontrol.wait: what a GPU
// may do before the previous grid has ended.
func (g *Grid) Early(ctx context.Context, count int) error {
	g.early = true
	defer func() { g.early = false }()
	for range count {
		b := g.begin()
		if b == nil {
			return nil
		}
		ended, err := g.advance(ctx, b)
		if err != nil {
			return err
		}
		if !ended {
			g.begun = append(g.begun, b)
		}
	}
	return nil
}

// Some runs up to count blocks to their ends, and reports whether all have ended: so
// that several grids can run in turn.
func (g *Grid) Some(ctx context.Context, count int) (ended bool, err error) {
	for range count {
		b := g.begin()
		if b == nil {
			return true, nil
		}
		if _, err := g.advance(ctx, b); err != nil {
			return false, err
		}
	}
	return len(g.order) == 0, nil
}

// Run runs everything that is left.
func (g *Grid) Run(ctx context.Context) error {
	for _, b := range g.begun {
		for w := range b.warps() {
			w.held = false
		}
		if _, err := g.advance(ctx, b); err != nil {
			return err
		}
	}
	g.begun = nil
	for {
		b := g.begin()
		if b == nil {
			break
		}
		if _, err := g.advance(ctx, b); err != nil {
			return err
		}
	}
	if g.floor != 0 && !g.waited {
		return &Fault{Kernel: g.kernel.Name, Err: errNoWait}
	}
	return nil
}

var errNoWait = errors.New("ends without griddepcontrol.wait, behind a grid that may not have ended")

// begin starts a block, or those of a cluster; nil when all have started.
func (g *Grid) begin() *cluster {
	if len(g.order) == 0 {
		return nil
	}
	count := max(g.kernel.Cluster, 1)
	first := g.order[len(g.order)-1] * count
	g.order = g.order[:len(g.order)-1]
	var c *cluster
	if n := len(g.pool); n > 0 {
		c = g.pool[n-1]
		g.pool = g.pool[:n-1]
	} else {
		c = &cluster{}
		for rank := range count {
			c.blocks = append(c.blocks, g.newBlock(c, rank))
		}
	}
	shape := g.launch.Grid
	for _, b := range c.blocks {
		flat := first + b.rank
		b.index = [3]int{flat % shape[0], flat / shape[0] % shape[1], flat / shape[0] / shape[1]}
		b.shared.begin()
		b.triggered = false
		for i := range b.products {
			b.products[i] = b.products[i][:0]
		}
		for i, w := range b.warps {
			w.start(b, i)
		}
	}
	return c
}

func (g *Grid) newBlock(c *cluster, rank int) *block {
	b := &block{rank: rank, peers: c, shared: newSharedMemory(max(g.kernel.Shared, g.kernel.extern+g.launch.Shared))}
	for range (g.threads + lanes - 1) / lanes {
		b.warps = append(b.warps, newWarp(g))
	}
	b.products = make([][]groupOperands, (len(b.warps)+groupWarps-1)/groupWarps)
	return b
}

// trigger notes that a block lets the next grid start.
func (g *Grid) trigger(b *block) error {
	if b.triggered {
		return nil
	}
	b.triggered = true
	g.ready++
	if shape := g.launch.Grid; g.ready == shape[0]*shape[1]*shape[2] && g.launch.Dependents != nil {
		return g.launch.Dependents()
	}
	return nil
}

// quantum bounds how many steps a warp runs before another may.
const quantum = 512

// advance runs the warps of a block, or of a cluster, in random order until all have ended or
// those left are held.
func (g *Grid) advance(ctx context.Context, c *cluster) (ended bool, err error) {
	runnable := make([]*warp, 0, len(c.blocks)*len(c.blocks[0].warps))
	for {
		if err := ctx.Err(); err != nil {
			return false, context.Cause(ctx)
		}
		runnable = runnable[:0]
		held, left := 0, 0
		for w := range c.warps() {
			switch {
			case w.done():
			case w.held:
				held++
			case w.waiting || w.gathering && !c.gathered(w):
				left++
			default:
				w.gathering = false
				runnable = append(runnable, w)
			}
		}
		switch {
		case len(runnable) > 0:
			w := runnable[g.random.IntN(len(runnable))]
			if err := w.run(1 + g.random.IntN(quantum)); err != nil {
				return false, err
			}
		case left > 0 && c.meet():
		case held > 0:
			return false, nil
		case left > 0:
			return false, &Fault{Kernel: g.kernel.Name, Block: c.blocks[0].index, Err: errStuck}
		default:
			g.pool = append(g.pool, c)
			return true, g.end(c)
		}
	}
}
