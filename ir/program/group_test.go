package program

import (
	"strings"
	"testing"

	"tgc/ir"
)

const groupProgram = `program "group"
grid 1
block 2 128
%0:f32x8 = const 0
%1:*bf16@shared = alloca count 8192 align 1024
%2:*bf16@shared = alloca count 8192 align 1024
%3:i64 = const 4096
gridloop %4:i64 {
  %5:i32 = threadindex lane 0
  %6:i64 = cast %5
  %7:i64 = mul %6 %3
  %8:*bf16@shared = ptradd %1 %7
  %9:f32x8 = groupmma %0 %8 %2
}
`

func TestGroupTextForm(t *testing.T) { roundTrip(t, groupProgram) }

// Pieces of eight lines have all places in them, and each place is that of one piece.
func TestGroupOffset(t *testing.T) {
	for linear, want := range map[int64]int64{0: 0, 16: 16, 128: 144, 144: 128, 128 + 32: 128 + 48, 7*128 + 2: 7*128 + 114, 1024 + 96: 1024 + 96, 1024 + 3*128 + 64: 1024 + 3*128 + 112} {
		if got := GroupOffset(linear); got != want || GroupOffset(got) != linear {
			t.Errorf("%d lies at %d, want %d", linear, got, want)
		}
	}
	for offset, want := range map[int64]bool{0: true, 32: true, 96: true, 1024: true, 3*1024 + 64: true, 16: false, 128: false, 512: false, 1024 + 128: false, 2: false} {
		if InGroupArray(offset) != want {
			t.Errorf("a matrix may begin at %d: %t", offset, !want)
		}
	}
}

// Products have one to 32 times eight columns.
func TestGroupColumns(t *testing.T) {
	for _, c := range []struct {
		acc  Type
		want int
	}{{Vector(ir.F32, 4), 8}, {Vector(ir.F32, 12), 24}, {Vector(ir.F32, 128), 256}, {Vector(ir.F32, 132), 0}, {Vector(ir.F32, 2), 0}, {Vector(ir.F16, 4), 0}} {
		if n, ok := GroupColumns(c.acc); ok != (c.want > 0) || ok && n != c.want {
			t.Errorf("%s: %d columns, %t, want %d", c.acc, n, ok, c.want)
		}
	}
}

// All warps of a block come to a product, and the threads of each name the same matrices.
func TestUniformityOfGroups(t *testing.T) {
	for _, c := range []struct {
		name, want string
		threads    int64
		build      func(b *Builder, product func(offset *Value))
	}{
		{"all threads", "", 256, func(b *Builder, product func(*Value)) { product(b.Index(0)) }},
		{"a warpgroup's own rows", "", 256, func(b *Builder, product func(*Value)) {
			product(b.Mul(b.FloorDiv(b.Cast(b.ThreadIndex(0), ir.I64), b.Index(128)), b.Index(4096)))
		}},
		{"half of a warpgroup", "a block of 192 threads, want a multiple of 128", 192, func(b *Builder, product func(*Value)) { product(b.Index(0)) }},
		{"a warp of four", "all threads of a warp, want all threads of the block", 128, func(b *Builder, product func(*Value)) {
			b.If(b.Lt(b.ThreadIndex(0), b.Int(Scalar(ir.I32), 32)), func() []*Value { product(b.Index(0)); return nil }, nil)
		}},
		{"a matrix of each thread", "one thread, want all threads of a warp", 128, func(b *Builder, product func(*Value)) {
			product(b.Cast(b.ThreadIndex(0), ir.I64))
		}},
	} {
		b := NewBuilder("group")
		b.SetGrid(1)
		b.SetBlock(c.threads)
		left, right := b.Alloca(ir.F16, SharedSpace, 8192, GroupAlign), b.Alloca(ir.F16, SharedSpace, 1024, GroupAlign)
		b.GridLoop(func(*Value) {
			c.build(b, func(offset *Value) {
				b.GroupMma(b.Zero(Vector(ir.F32, 4)), b.PtrAdd(left, offset), right)
			})
		})
		if err := VerifyGPU(b.Finish()); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
