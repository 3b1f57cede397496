package gpu

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
)

// Address is where a pointer points: Base + Off bytes.
type Address struct {
	Base  string // a variable, or the name of a parameter, a table or a memory
	Off   int64
	Fixed bool // to bytes that nothing writes
	// array and index (elements) instead, for an Alloca without memory.
	array []Operand
	index int64
}

// Plus is the address some bytes later.
func (a *Address) Plus(bytes int64) *Address {
	out := *a
	out.Off += bytes
	return &out
}

// Is32 reports a space whose addresses are 32 bits.
func Is32(space program.Space) bool {
	return space == program.SharedSpace || space == program.LocalSpace || space == program.PeerSpace
}

// peerPtr is the place that a pointer is to, in another block of the cluster.
func (s *Selector) peerPtr(in *program.Instr) {
	a := s.Address(in.Args[0])
	block := s.Lane(in.Args[1], 0)
	base := s.Once(fmt.Sprintf("peer %s %s %d", a.Base, block.Name, block.Bits), func() Operand { return s.print.Peer(a.Base, block) })
	s.setAddress(in.Result, &Address{Base: base.Name, Off: a.Off})
}

// Address is where a pointer points.
func (s *Selector) Address(p *program.Value) *Address { return s.values[p.ID].address }

func (s *Selector) setAddress(p *program.Value, a *Address) { s.values[p.ID] = &held{address: a} }

// noteSum remembers ADD of a constant to an index.
func (s *Selector) noteSum(in *program.Instr) {
	if in.Ir != ir.OpAdd || in.Result.Type != program.Scalar(ir.I64) {
		return
	}
	s.sums.Note(in, s.consts, func(x, y *program.Value) bool { return s.TypeOf(x) == s.TypeOf(y) })
}

// entryIndex is an index that is the number of a table's entry times its size. Every
// entry has a number of its own, so an address computes the product along the way; what
// indexes buffers is mostly shared by several addresses.
type entryIndex struct {
	of   *program.Value
	size int64
}

// noteEntry remembers MUL of an index by a constant.
func (s *Selector) noteEntry(in *program.Instr) {
	if in.Ir != ir.OpMul || in.Result.Type != program.Scalar(ir.I64) {
		return
	}
	of, by := in.Args[0], s.consts[in.Args[1]]
	if by != nil && by.Int > 0 && by.Int < 1<<16 && s.TypeOf(of) == I32 && s.TypeOf(in.Result) == I32 {
		s.entries[in.Result] = entryIndex{of, by.Int}
	}
}

// ptrAdd moves a pointer. Constants go into the offset, so accesses around one
// computed address share it.
func (s *Selector) ptrAdd(in *program.Instr) {
	p, index := in.Args[0], in.Args[1]
	from := s.Address(p)
	size := int64(p.Type.Elem.Size())
	s.follow(p, in.Result)
	if from.array != nil {
		a := *from
		a.index += s.consts[index].Int
		s.setAddress(in.Result, &a)
		return
	}
	sum := s.sums.Of(index)
	from = from.Plus(sum.Constant * size)
	if m, ok := s.entries[sum.Of]; ok && s.tables[p] != nil {
		sum.Of, size = m.of, size*m.size
	}
	a := s.scaled(from, p.Type.Space, s.Lane(sum.Of, 0), size)
	s.setAddress(in.Result, s.print.Reachable(a, p.Type.Space))
}

// follow keeps what is known of the buffer that a pointer is into.
func (s *Selector) follow(from, to *program.Value) {
	if p := s.access[from]; p != nil {
		s.access[to] = p
	}
	if p := s.tables[from]; p != nil {
		s.tables[to] = p
	}
}

// scaled is an address index elements of size bytes later, its base computed once
// a scope.
func (s *Selector) scaled(a *Address, space program.Space, index Operand, size int64) *Address {
	if index.Literal() {
		return a.Plus(int64(index.Bits) * size)
	}
	key := fmt.Sprintf("address %s %s %d", a.Base, index.Name, size)
	out := *a
	out.Base = s.Once(key, func() Operand { return s.print.Scaled(a, space, index, size) }).Name
	return &out
}

func (s *Selector) pointerCast(in *program.Instr) {
	s.follow(in.Args[0], in.Result)
	s.setAddress(in.Result, s.Address(in.Args[0]).Plus(0))
}

// SharedMemory and LocalMemory name the memories of a block and of a thread.
const SharedMemory, LocalMemory = "shared_memory", "local_memory"

func (s *Selector) alloca(in *program.Instr) error {
	elem := in.Result.Type.Elem
	if a, ok := s.arrays[in.Result]; ok {
		s.setAddress(in.Result, &Address{array: s.print.Array(TypeOf(elem), a.Count)})
		return nil
	}
	used, name := &s.LocalBytes, LocalMemory
	if in.Result.Type.Space == program.SharedSpace {
		used, name = &s.SharedBytes, SharedMemory
	}
	align := int64(max(in.Align, 1))
	if in.Result.Type.Space == program.SharedSpace {
		s.sharedAlign = max(s.sharedAlign, in.Align)
	}
	*used = (*used + align - 1) / align * align
	s.setAddress(in.Result, &Address{Base: name, Off: *used})
	*used += in.Count * int64(elem.Size())
	if *used > 1<<26 {
		return fmt.Errorf("%d bytes of %s", *used, name)
	}
	return nil
}

// SharedAlign is the alignment of a block's shared memory.
func (s *Selector) SharedAlign() int {
	const least = 128
	return max(s.sharedAlign, least)
}

// element is the address of the i-th offset of a gather or scatter.
func (s *Selector) element(p, offsets *program.Value, i int) *Address {
	return s.scaled(s.Address(p), p.Type.Space, s.Lane(offsets, i), int64(p.Type.Elem.Size()))
}
