package ptxemu

import (
	"fmt"
	"slices"
	"sort"
)

// Memory is the global memory of a device: allocations at virtual addresses
// far from each other. Every byte has a shadow that says whether anything was
// written to it. It is not safe for concurrent use.
type Memory struct {
	list []*allocation // by address
	next uint64
	used int64
	// grids counts the grids that were started, which stamp what they touch.
	grids uint32
	// windows are addresses at which the memory unit sees another space.
	windows []Window
}

// Window is a run of addresses.
type Window struct{ Address, Size uint64 }

func (w Window) overlaps(address, size uint64) bool {
	return address < w.Address+w.Size && w.Address < address+size
}

// allocation is bytes at an address. Its shadow has a bit per byte, counted
// from the address rounded down to 64, so that an aligned access lies in one
// word.
type allocation struct {
	address  uint64
	data     []byte
	shadow   []uint64
	skew     uint64  // address % 64
	stamps   []stamp // by granule
	readOnly bool
	windows  bool    // a window lies in it
	owner    *Module // of the variables of a module
	variable *variable
}

// granule is the unit in which grids are told apart, in bytes: buffers of
// different kernels are aligned to it.
const granule = 64

// stamp says which grids touched a granule last: one that wrote, and one that
// read ahead of its wait.
type stamp struct{ wrote, early uint32 }

// firstAddress and the gap between allocations, in bytes: no offset that a
// kernel gets wrong by less ends in another allocation.
const (
	firstAddress = 0x7f00_0000_0000
	gap          = 1 << 20
)

// maxMemory bounds all allocations together, in bytes.
const maxMemory = 1 << 36

// garbage is what undefined memory holds: NaN in every float type.
const garbage = 0xff

// NewMemory is an empty device memory.
func NewMemory() *Memory { return &Memory{next: firstAddress} }

// Alloc reserves bytes that nothing has written, at an address that is a
// multiple of align and of no larger power of two.
func (m *Memory) Alloc(size int64, align int) (uint64, error) {
	if size < 0 || m.used+size > maxMemory {
		return 0, fmt.Errorf("ptx: out of memory: %d bytes asked for, %d of %d in use", size, m.used, int64(maxMemory))
	}
	if align < 1 || align&(align-1) != 0 || align > gap {
		return 0, fmt.Errorf("ptx: allocation aligned to %d, want a power of two up to %d", align, gap)
	}
	unit := uint64(align) * 2
	address := (m.next+unit-1)/unit*unit + uint64(align)
	a := &allocation{address: address, data: make([]byte, size), skew: address % 64}
	a.shadow = make([]uint64, (uint64(size)+a.skew+63)/64)
	a.stamps = make([]stamp, (uint64(size)+a.skew+granule-1)/granule)
	for i := range a.data {
		a.data[i] = garbage
	}
	m.next = (address + uint64(size) + gap) / gap * gap
	m.used += size
	i := sort.Search(len(m.list), func(i int) bool { return m.list[i].address > address })
	m.list = slices.Insert(m.list, i, a)
	return address, nil
}

// Map makes bytes memory at an address, all of them defined: what kernels store is in
// the bytes at once, and what is stored in those is seen by kernels. Free ends it.
func (m *Memory) Map(address uint64, data []byte, readOnly bool) error {
	size := uint64(len(data))
	i := sort.Search(len(m.list), func(i int) bool { return m.list[i].address >= address })
	if size == 0 || address+size < address || i > 0 && m.list[i-1].end() > address || i < len(m.list) && m.list[i].address < address+size {
		return fmt.Errorf("ptx: %d bytes mapped at %#x, where something is", size, address)
	}
	a := &allocation{address: address, data: data, skew: address % 64, readOnly: readOnly}
	a.shadow = make([]uint64, (size+a.skew+63)/64)
	a.stamps = make([]stamp, (size+a.skew+granule-1)/granule)
	a.mark(0, size, true)
	a.windows = slices.ContainsFunc(m.windows, func(w Window) bool { return w.overlaps(address, size) })
	m.used += int64(size)
	m.list = slices.Insert(m.list, i, a)
	return nil
}

// SetWindows says at which addresses accesses of global memory are errors: those by
// which a GPU means the memory of blocks and threads.
func (m *Memory) SetWindows(windows []Window) {
	m.windows = slices.Clone(windows)
	for _, a := range m.list {
		a.windows = slices.ContainsFunc(windows, func(w Window) bool { return w.overlaps(a.address, uint64(len(a.data))) })
	}
}

// inWindow reports an access in a window.
func (m *Memory) inWindow(address uint64, n int) error {
	for _, w := range m.windows {
		if w.overlaps(address, uint64(n)) {
			return &AddressError{address, InWindow, fmt.Sprintf("%d bytes at %#x: in the window at %#x, which is no global memory", n, address, w.Address)}
		}
	}
	return nil
}

// Free gives an allocation back; Alloc never gives its address again.
func (m *Memory) Free(address uint64) error {
	for i, a := range m.list {
		if a.address == address {
			m.used -= int64(len(a.data))
			m.list = append(m.list[:i:i], m.list[i+1:]...)
			return nil
		}
	}
	return fmt.Errorf("ptx: free of %#x, which is no allocation", address)
}

// Used is the number of bytes allocated.
func (m *Memory) Used() int64 { return m.used }

// Write copies bytes to an address; they are defined from then on.
func (m *Memory) Write(address uint64, from []byte) error {
	a, at, err := m.span(address, len(from))
	if err != nil {
		return fmt.Errorf("ptx: write: %w", err)
	}
	copy(a.data[at:], from)
	a.mark(at, uint64(len(from)), true)
	return nil
}

// Read copies bytes from an address, defined or not.
func (m *Memory) Read(address uint64, into []byte) error {
	a, at, err := m.span(address, len(into))
	if err != nil {
		return fmt.Errorf("ptx: read: %w", err)
	}
	copy(into, a.data[at:])
	return nil
}

// Bytes is the memory itself: what is written through it is not marked as
// defined.
func (m *Memory) Bytes(address uint64, n int) ([]byte, error) {
	a, at, err := m.span(address, n)
	if err != nil {
		return nil, fmt.Errorf("ptx: bytes: %w", err)
	}
	return a.data[at : at+uint64(n) : at+uint64(n)], nil
}

// Fill sets bytes to a value; they are defined from then on.
func (m *Memory) Fill(address uint64, value byte, n int) error {
	return m.set("fill", address, value, n, true)
}

// Poison makes bytes undefined again, as memory is whose old contents nobody
// may rely on.
func (m *Memory) Poison(address uint64, n int) error {
	return m.set("poison", address, garbage, n, false)
}

func (m *Memory) set(what string, address uint64, value byte, n int, defined bool) error {
	a, at, err := m.span(address, n)
	if err != nil {
		return fmt.Errorf("ptx: %s: %w", what, err)
	}
	for i := range n {
		a.data[at+uint64(i)] = value
	}
	a.mark(at, uint64(n), defined)
	return nil
}

// ReadOnly makes stores to an allocation errors.
func (m *Memory) ReadOnly(address uint64, readOnly bool) error {
	a := m.find(address)
	if a == nil {
		return fmt.Errorf("ptx: %#x is no allocation", address)
	}
	a.readOnly = readOnly
	return nil
}

func (m *Memory) span(address uint64, n int) (*allocation, uint64, error) {
	a := m.find(address)
	if a == nil || address+uint64(n) > a.end() {
		return nil, 0, outside(m, address, n)
	}
	return a, address - a.address, nil
}

// find is the allocation that holds an address, or ends at it.
func (m *Memory) find(address uint64) *allocation {
	i := sort.Search(len(m.list), func(i int) bool { return m.list[i].address > address })
	if i == 0 || address > m.list[i-1].end() {
		return nil
	}
	return m.list[i-1]
}

func (a *allocation) end() uint64 { return a.address + uint64(len(a.data)) }

// outside describes an address that no allocation has.
func outside(m *Memory, address uint64, n int) error {
	if err := m.inWindow(address, n); err != nil {
		return err
	}
	i := sort.Search(len(m.list), func(i int) bool { return m.list[i].address > address })
	where := "before every allocation"
	if i > 0 {
		a := m.list[i-1]
		where = fmt.Sprintf("%d bytes past the start of an allocation of %d", address-a.address, len(a.data))
	}
	return &AddressError{address, Outside, fmt.Sprintf("%d bytes at %#x: %s", n, address, where)}
}

// mark sets or clears the shadow of n bytes.
func (a *allocation) mark(at, n uint64, defined bool) {
	first, end := at+a.skew, at+a.skew+n
	for first < end {
		w, bit := first/64, first%64
		count := min(64-bit, end-first)
		bits := mask(int(count)) << bit
		if defined {
			a.shadow[w] |= bits
		} else {
			a.shadow[w] &^= bits
		}
		first += count
	}
}

// isDefined reports n bytes that were all written.
func (a *allocation) isDefined(at, n uint64) bool {
	first, end := at+a.skew, at+a.skew+n
	for first < end {
		w, bit := first/64, first%64
		count := min(64-bit, end-first)
		if bits := mask(int(count)) << bit; a.shadow[w]&bits != bits {
			return false
		}
		first += count
	}
	return true
}

// stampWrite notes a write of n bytes by a grid, which no later grid may have
// read ahead of its wait.
func (a *allocation) stampWrite(at, n uint64, grid uint32) error {
	for i := (at + a.skew) / granule; i <= (at+a.skew+n-1)/granule; i++ {
		s := &a.stamps[i]
		if s.early > grid {
			return fmt.Errorf("writes %d bytes at %#x, which a grid after it has read ahead of griddepcontrol.wait", n, a.address+at)
		}
		s.wrote = grid
	}
	return nil
}

// stampEarly notes a read of n bytes by a grid ahead of its wait; those from
// floor on may not have ended. A wait orders nothing between blocks of one grid.
func (a *allocation) stampEarly(at, n uint64, grid, floor uint32) error {
	for i := (at + a.skew) / granule; i <= (at+a.skew+n-1)/granule; i++ {
		s := &a.stamps[i]
		if s.wrote >= floor && s.wrote != grid {
			return fmt.Errorf("reads %d bytes at %#x ahead of griddepcontrol.wait, which a grid before it writes", n, a.address+at)
		}
		s.early = grid
	}
	return nil
}
