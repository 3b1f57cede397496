package ptxemu_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"tgc/internal/ptxemu"
)

// addOne is y[i] = x[i] + table[1], a thread an element.
const addOne = `.version 7.4
.target sm_87
.address_size 64
.global .align 16 .b8 table[8] = {9, 9, 9, 9, 1, 0, 0, 0};
.visible .entry add(.param .u64 x, .param .u64 y)
{
	.reg .b64 %d<8>; .reg .b32 %r<8>;
	ld.param.u64 %d0, [x];
	ld.param.u64 %d1, [y];
	mov.u32 %r0, %ctaid.x;
	mov.u32 %r1, %tid.x;
	mad.lo.u32 %r0, %r0, 32, %r1;
	mul.wide.u32 %d2, %r0, 4;
	add.u64 %d0, %d0, %d2;
	add.u64 %d1, %d1, %d2;
	mov.u64 %d3, table;
	ld.global.u32 %r2, [%d0];
	ld.global.u32 %r3, [%d3+4];
	add.u32 %r2, %r2, %r3;
	st.global.u32 [%d1], %r2;
	ret;
}
`

// mapped is two buffers of four blocks and the table at addresses of the test's choice.
type mapped struct {
	memory         *ptxemu.Memory
	x, y, table    []byte
	kernel         *ptxemu.Kernel
	xAt, yAt, tabl uint64
}

func newMapped(t *testing.T, xAt, yAt uint64) *mapped {
	t.Helper()
	module, err := ptxemu.Parse(addOne)
	if err != nil {
		t.Fatal(err)
	}
	m := &mapped{memory: ptxemu.NewMemory(), x: make([]byte, 512), y: make([]byte, 512), table: []byte{0, 0, 0, 0, 5, 0, 0, 0}, xAt: xAt, yAt: yAt, tabl: 0x9000}
	if m.kernel, err = module.Kernel("add"); err != nil {
		t.Fatal(err)
	}
	for _, b := range []struct {
		at   uint64
		data []byte
	}{{xAt, m.x}, {yAt, m.y}, {m.tabl, m.table}} {
		if err := m.memory.Map(b.at, b.data, false); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 128 {
		binary.LittleEndian.PutUint32(m.x[4*i:], uint32(i))
	}
	return m
}

func (m *mapped) launch(blocks int, x, y uint64) ptxemu.Launch {
	parameter := func(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
	return ptxemu.Launch{
		Grid: [3]int{blocks, 1, 1}, Block: [3]int{32, 1, 1}, Memory: m.memory, Params: [][]byte{parameter(x), parameter(y)},
		Globals: func(name string) (uint64, bool) { return m.tabl, name == "table" },
	}
}

// Kernels run on bytes of the host at addresses that others chose; a module's variables
// are where its loader put them.
func TestMap(t *testing.T) {
	m := newMapped(t, 0x1000, 0x1200) // one after the other
	if err := m.kernel.Launch(context.Background(), m.launch(4, m.xAt, m.yAt)); err != nil {
		t.Fatal(err)
	}
	for i := range 128 {
		if got := binary.LittleEndian.Uint32(m.y[4*i:]); got != uint32(i)+5 {
			t.Fatalf("[%d] = %d, want %d", i, got, i+5)
		}
	}
	for _, bad := range [][2]uint64{{0xfff, 2}, {0x11ff, 1}, {0x800, 0x2000}, {0x1400 - 1, 1}} {
		if err := m.memory.Map(bad[0], make([]byte, bad[1]), false); err == nil {
			t.Errorf("%d bytes at %#x are mapped twice", bad[1], bad[0])
		}
	}
	if err := m.memory.Free(0x1200); err != nil {
		t.Fatal(err)
	}
	if kind := kindOf(t, m, 4, m.yAt); kind != ptxemu.Outside {
		t.Errorf("kind %d of a store to what is not mapped any more", kind)
	}
}

func kindOf(t *testing.T, m *mapped, blocks int, y uint64) ptxemu.AddressKind {
	t.Helper()
	err := m.kernel.Launch(context.Background(), m.launch(blocks, m.xAt, y))
	var wrong *ptxemu.AddressError
	if !errors.As(err, &wrong) {
		t.Fatalf("got %v, want a wrong address", err)
	}
	return wrong.Kind
}

// Global memory ends where a window begins, whether something is mapped there or not.
func TestWindows(t *testing.T) {
	m := newMapped(t, 0x1000, 0xfdffff00)
	m.memory.SetWindows([]ptxemu.Window{{Address: 0xfe000000, Size: 1 << 24}})
	if err := m.kernel.Launch(context.Background(), m.launch(2, m.xAt, m.yAt)); err != nil {
		t.Fatal(err)
	}
	if kind := kindOf(t, m, 3, m.yAt); kind != ptxemu.InWindow {
		t.Errorf("kind %d of a store in the window", kind)
	}
	if kind := kindOf(t, m, 1, 0xfe800000); kind != ptxemu.InWindow {
		t.Errorf("kind %d of a store in the window to nothing", kind)
	}
	if kind := kindOf(t, m, 1, m.yAt+2); kind != ptxemu.Misaligned {
		t.Errorf("kind %d of a store at an odd address", kind)
	}
	if err := m.memory.ReadOnly(m.xAt, true); err != nil {
		t.Fatal(err)
	}
	if kind := kindOf(t, m, 1, m.xAt); kind != ptxemu.ReadOnly {
		t.Errorf("kind %d of a store to what may be read", kind)
	}
}

// Two grids in turn, a block at a time, end as one after the other do.
func TestInTurn(t *testing.T) {
	m := newMapped(t, 0x1000, 0x2000)
	var grids []*ptxemu.Grid
	for _, y := range []uint64{m.yAt, m.xAt} { // the second one reads what it writes only
		g, err := m.kernel.Start(m.launch(4, m.xAt, y))
		if err != nil {
			t.Fatal(err)
		}
		grids = append(grids, g)
	}
	for step, left := 0, 2; left > 0; step++ {
		if step > 8 {
			t.Fatal("the grids do not end")
		}
		left = 0
		for _, g := range grids {
			ended, err := g.Some(context.Background(), 1)
			if err != nil {
				t.Fatal(err)
			}
			if !ended {
				left++
			}
		}
	}
	if got := binary.LittleEndian.Uint32(m.x[4*77:]); got != 77+5 {
		t.Errorf("%d, want %d", got, 77+5)
	}
	own := m.launch(1, m.xAt, m.yAt)
	own.Globals = func(string) (uint64, bool) { return 0, false }
	if err := m.kernel.Launch(context.Background(), own); err != nil {
		t.Fatal(err)
	}
	if got, want := binary.LittleEndian.Uint32(m.y), binary.LittleEndian.Uint32(m.x)+1; got != want {
		t.Errorf("%d with the module's own table, want %d", got, want)
	}
}
