package interp

import (
	"fmt"
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

// A program with threads (Program.Block) runs all threads of a block at once: a
// register holds the lanes of thread 0, then those of thread 1, and so on, so
// that elementwise instructions stay one loop. See program_block.go.

// register is where a value lives: data or pointer.
type register struct {
	data []byte
	ptr  *pointer
	ptrs []pointer // by thread, of a program with threads
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
}

// machine holds the registers of one running program. It is not safe for
// concurrent use.
type machine struct {
	program *program.Program
	debug   bool
	regs    []register // by value id
	code    []func()
	lo, hi  int64
	fault   error  // of the first bad access; no store happens after it
	threads int    // of a block
	block   *block // nil without threads
}

// newMachine compiles a verified and expanded program.
func newMachine(p *program.Program, debug bool) (*machine, error) {
	m := &machine{program: p, debug: debug, regs: make([]register, p.Values), threads: 1}
	if len(p.Block) > 0 {
		m.block = newBlock(p)
		m.threads = m.block.threads
	}
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
	m.regs[p.Value.ID].ptr = &pointer{region: r}
	if m.block != nil {
		m.regs[p.Value.ID].ptrs = repeat(pointer{region: r}, m.threads)
	}
}

// bind sets the arguments, one per parameter; tables bring their own.
func (m *machine) bind(args []Arg) error {
	if len(args) != len(m.program.Params) {
		return fmt.Errorf("interp: kernel %s: %d arguments, want %d", m.program.Name, len(args), len(m.program.Params))
	}
	for i, p := range m.program.Params {
		switch p.Kind {
		case program.ParamBuffer:
			m.regs[p.Value.ID].ptr.region.bytes = args[i].Bytes
		case program.ParamVar:
			for t := range m.threads {
				lanes[int64](m.regs[p.Value.ID])[t] = args[i].Int64
			}
		}
	}
	return nil
}

// run executes the prologue and the work units [lo, hi).
func (m *machine) run(lo, hi int64) error {
	m.fault = nil
	if m.block != nil {
		return m.runBlocks(lo, hi)
	}
	m.lo, m.hi = lo, hi
	exec(m.code)
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
		r.ptr = &pointer{}
		if m.block != nil {
			r.ptrs = make([]pointer, m.threads)
		}
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
	if m.block != nil && in.Op != program.Alu {
		return m.threadInstr(in)
	}
	switch in.Op {
	case program.Const, program.ConstLanes, program.Iota:
		m.constant(in)
		return nil, nil
	case program.Alu:
		return m.alu(in)
	case program.Broadcast, program.Extract, program.Insert, program.Shuffle, program.Concat:
		return m.movement(in), nil
	case program.FoldLanes:
		return m.fold(in)
	case program.Dot4:
		return m.dot4(in), nil
	case program.PtrAdd:
		return m.ptrAdd(in), nil
	case program.Load, program.Store, program.Gather, program.Scatter, program.Guarded:
		return m.memory(in), nil
	case program.Prefetch:
		return nil, nil
	case program.Alloca:
		return m.alloca(in), nil
	case program.For:
		return m.loop(in)
	case program.If:
		return m.branch(in)
	case program.GridLoop:
		return m.grid(in)
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
		case in.Op == program.Iota:
			n = ir.WrapInt(t.Elem, int64(lane))
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

// Control flow.

func (m *machine) grid(in *program.Instr) (func(), error) {
	body, err := m.compile(in.Body)
	if err != nil {
		return nil, err
	}
	index := lanes[int64](m.reg(in.Body.Args[0]))
	return func() {
		for unit := m.lo; unit < m.hi && m.fault == nil; unit++ {
			index[0] = unit
			exec(body)
		}
	}, nil
}

// loop compiles a For. The results share the registers of the carried block
// arguments: after the last yield those hold the results.
func (m *machine) loop(in *program.Instr) (func(), error) {
	body, err := m.compile(in.Body)
	if err != nil {
		return nil, err
	}
	carried := in.Body.Args[1:]
	start := m.copies(carried, in.Args[3:])
	if next := m.copies(carried, yielded(in.Body)); next != nil {
		body = append(body, next)
	}
	for i, r := range in.Results {
		m.regs[r.ID] = m.reg(carried[i])
	}
	lo, hi, step := lanes[int64](m.reg(in.Args[0])), lanes[int64](m.reg(in.Args[1])), lanes[int64](m.reg(in.Args[2]))
	index := lanes[int64](m.reg(in.Body.Args[0]))
	return func() {
		if start != nil {
			start()
		}
		by := step[0]
		if by <= 0 {
			m.fail(in, fmt.Errorf("step %d, want at least 1", by))
			return
		}
		for i, end := lo[0], hi[0]; i < end && m.fault == nil; i += by {
			index[0] = i
			exec(body)
		}
	}, nil
}

func (m *machine) branch(in *program.Instr) (func(), error) {
	then, err := m.compile(in.Body)
	if err != nil {
		return nil, err
	}
	other, err := m.compile(in.Else)
	if err != nil {
		return nil, err
	}
	for _, r := range in.Results {
		m.define(r)
	}
	if c := m.copies(in.Results, yielded(in.Body)); c != nil {
		then = append(then, c)
	}
	if c := m.copies(in.Results, yielded(in.Else)); c != nil {
		other = append(other, c)
	}
	cond := lanes[uint8](m.reg(in.Args[0]))
	return func() {
		if cond[0] != 0 {
			exec(then)
		} else {
			exec(other)
		}
	}, nil
}

func yielded(b *program.Block) []*program.Value {
	return b.Instrs[len(b.Instrs)-1].Args
}

// copies compiles a parallel assignment to <- from. When a source shares bytes
// with another target, everything goes through a buffer.
func (m *machine) copies(to, from []*program.Value) func() {
	type move struct{ to, from []byte }
	var moves []move
	hazard := false
	total := 0
	for i := range to {
		t, f := m.reg(to[i]).data, m.reg(from[i]).data
		if &t[0] == &f[0] {
			continue
		}
		moves = append(moves, move{t, f})
		total += len(t)
		for j := range to {
			hazard = hazard || j != i && overlap(m.reg(to[j]).data, f)
		}
	}
	switch {
	case len(moves) == 0:
		return nil
	case hazard:
		buffer := newBytes(total)
		return func() {
			at := 0
			for _, c := range moves {
				at += copy(buffer[at:], c.from)
			}
			at = 0
			for _, c := range moves {
				at += copy(c.to, buffer[at:at+len(c.to)])
			}
		}
	case len(moves) == 1:
		t, f := moves[0].to, moves[0].from
		return func() { copy(t, f) }
	}
	return func() {
		for _, c := range moves {
			copy(c.to, c.from)
		}
	}
}

func overlap(a, b []byte) bool {
	a0, b0 := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return a0 < b0+uintptr(len(b)) && b0 < a0+uintptr(len(a))
}

// fail records the first fault.
func (m *machine) fail(in *program.Instr, err error) {
	if m.fault == nil {
		m.fault = fmt.Errorf("interp: kernel %s: `%s`: %w", m.program.Name, program.PrintInstr(in), err)
	}
}
