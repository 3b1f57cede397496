package interp

import (
	"fmt"
	"slices"
	"unsafe"

	"tgc/ir"
	"tgc/ir/program"
)

// The program machine: a program is turned into closures once per machine,
// each bound to the typed lanes of its operands, so that running an
// instruction is one indirect call and one loop over plain Go slices.
//
// A value's register is lanes * element size bytes in memory layout (Bool is a
// byte 0 or 1, f16, bf16 and f8 are their bits); a pointer is a region and an
// offset into it. Values that only rename bytes (BITCAST, EXTRACT, contiguous
// SHUFFLE) share the register of their source.

// A program with threads (Program.Block) runs all threads of a block at once; one
// without is a block of one thread. A register holds the lanes of thread 0, then
// those of thread 1, and so on, so that elementwise instructions stay one loop. The blocks of
// a cluster run at once, too: threads are those of the first block, then those of the second, ..
// See program_block.go and program_cluster.go.

// register is where a value lives: data, or a pointer of each thread.
type register struct {
	data []byte
	ptrs []pointer
}

// pointer is a position in a region; Off may lie outside, accesses are checked.
type pointer struct {
	region *region
	off    int64
}

// region is a piece of memory that a program can address.
type region struct {
	name  string
	bytes []byte
	align int       // of its start: the least alignment that was claimed
	seen  *accesses // of shared memory
	peers []*region // of shared memory: the same in each block of the cluster
	block int       // of shared memory: whose it is
}

// machine holds the registers of one running program. It is not safe for
// concurrent use.
type machine struct {
	program *program.Program
	debug   bool
	regs    []register // by value id
	code    []func()
	lo, hi  int64
	fault   error // of the first bad access; no store happens after it
	threads int   // of a block, or of all blocks of a cluster
	block   *block
	copying []copying // under way
}

// newMachine compiles a verified and expanded program.
func newMachine(p *program.Program, debug bool) (*machine, error) {
	b := newBlock(p)
	m := &machine{program: p, debug: debug, regs: make([]register, p.Values), threads: len(b.active), block: b}
	for i := range p.Params {
		m.param(&p.Params[i])
	}
	code, err := m.compile(p.Body)
	if err != nil {
		return nil, fmt.Errorf("interp: kernel %s: %w", p.Name, err)
	}
	m.code = code
	return m, nil
}

func (m *machine) param(p *program.Param) {
	if p.Kind == program.ParamVar {
		m.define(p.Value)
		return
	}
	r := &region{align: p.Align}
	switch p.Kind {
	case program.ParamTable:
		r.name, r.bytes = "table", []byte(p.Table)
	default:
		r.name = fmt.Sprintf("buffer slot %d %q", p.Slot, p.Name)
	}
	m.regs[p.Value.ID].ptrs = slices.Repeat([]pointer{{region: r}}, m.threads)
}

// bind sets the arguments, one per parameter; tables bring their own.
func (m *machine) bind(args []Arg) error {
	if len(args) != len(m.program.Params) {
		return fmt.Errorf("interp: kernel %s: %d arguments, want %d", m.program.Name, len(args), len(m.program.Params))
	}
	for i, p := range m.program.Params {
		switch p.Kind {
		case program.ParamBuffer:
			m.regs[p.Value.ID].ptrs[0].region.bytes = args[i].Bytes
		case program.ParamVar:
			for t := range m.threads {
				lanes[int64](m.regs[p.Value.ID])[t] = args[i].Int64
			}
		}
	}
	return nil
}

// run executes the prologue and the work units [lo, hi); with threads, the
// prologue belongs to each block.
func (m *machine) run(lo, hi int64) error {
	m.fault, m.copying = nil, m.copying[:0]
	m.lo, m.hi = lo, hi
	if len(m.program.Block) == 0 {
		exec(m.code)
		return m.fault
	}
	for n := int64(m.block.count); lo < hi && m.fault == nil; lo += n {
		m.lo, m.hi = lo, lo+1
		m.block.begin()
		exec(m.code)
		m.endCopies()
		m.endCluster()
	}
	return m.fault
}

func exec(code []func()) {
	for _, step := range code {
		step()
	}
}

// define gives a value its register.
func (m *machine) define(v *program.Value) register {
	r := register{}
	if v.Type.Ptr {
		r.ptrs = make([]pointer, m.threads)
	} else {
		r.data = newBytes(v.Type.Lanes * v.Type.Elem.Size() * m.threads)
	}
	m.regs[v.ID] = r
	return r
}

// newBytes is zeroed memory aligned for every element type.
func newBytes(n int) []byte {
	if n == 0 {
		return nil
	}
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)[:n:n]
}

func (m *machine) reg(v *program.Value) register { return m.regs[v.ID] }

// lanes views a register's bytes as elements.
func lanes[T any](r register) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(&r.data[0])), len(r.data)/int(unsafe.Sizeof(t)))
}

// block compiles the instructions of a block, without its yield.
func (m *machine) compile(b *program.Block) ([]func(), error) {
	for _, a := range b.Args {
		m.define(a)
	}
	var code []func()
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Op == program.Yield {
			continue
		}
		step, err := m.instr(in)
		if err != nil {
			return nil, fmt.Errorf("`%s`: %w", program.PrintInstr(in), err)
		}
		if step != nil {
			code = append(code, step)
		}
	}
	return code, nil
}

// instr compiles one instruction; nil when nothing is left to do at run time.
func (m *machine) instr(in *program.Instr) (func(), error) {
	switch in.Op {
	case program.Const, program.ConstLanes:
		m.constant(in)
		return nil, nil
	case program.Alu:
		return m.alu(in)
	case program.Broadcast, program.Extract, program.Shuffle, program.Concat:
		return m.movement(in), nil
	case program.FoldLanes:
		return m.fold(in)
	case program.Dot4:
		return m.dot4(in), nil
	case program.PtrAdd:
		return m.ptrAdd(in), nil
	case program.Load, program.Guarded:
		return m.load(in), nil
	case program.Store:
		return m.store(in), nil
	case program.Gather, program.Scatter:
		return m.gatherScatter(in), nil
	case program.Alloca:
		return m.alloca(in), nil
	case program.For:
		return m.loop(in)
	case program.If:
		return m.branch(in)
	case program.GridLoop:
		return m.grid(in)
	case program.ThreadIndex:
		m.threadIndex(in)
		return nil, nil
	case program.Barrier:
		return func() { m.barrier(in) }, nil
	case program.SyncWarp:
		return func() { m.syncWarp() }, nil
	case program.PeerPtr:
		return m.peerPtr(in), nil
	case program.ClusterArrive:
		return func() { m.clusterArrive(in) }, nil
	case program.ClusterWait:
		return func() { m.clusterWait(in) }, nil
	case program.ShuffleLane:
		return m.shuffleLane(in), nil
	case program.Atomic:
		return m.atomic(in), nil
	case program.Mma:
		return m.mma(in)
	case program.GroupMma:
		return m.groupMma(in)
	case program.CopyAsync:
		return m.copyAsync(in), nil
	case program.WaitCopies:
		return func() { m.waitCopies() }, nil
	case program.TileDot:
		return m.tileDot(in), nil
	case program.Prefetch, program.WaitGrid, program.LaunchNext, program.Fence:
		return nil, nil
	}
	return nil, fmt.Errorf("the interpreter has no %s", in.Op)
}

func (m *machine) constant(in *program.Instr) {
	t := in.Result.Type
	r := m.define(in.Result)
	size := t.Elem.Size()
	for lane := range t.Lanes {
		n, f := in.Int, in.Float
		switch {
		case in.Op == program.ConstLanes && t.Elem.IsFloat():
			f = in.Floats[lane]
		case in.Op == program.ConstLanes:
			n = in.Ints[lane]
		}
		word := uint64(n)
		if t.Elem.IsFloat() {
			word = ir.FloatBits(t.Elem, f)
		}
		for i := range size {
			r.data[lane*size+i] = byte(word >> (8 * i))
		}
	}
	for n := t.Lanes * size; n < len(r.data); n *= 2 {
		copy(r.data[n:], r.data[:n])
	}
}

// fail records the first fault.
func (m *machine) fail(in *program.Instr, err error) {
	if m.fault == nil {
		m.fault = fmt.Errorf("interp: kernel %s: `%s`: %w", m.program.Name, program.PrintInstr(in), err)
	}
}
