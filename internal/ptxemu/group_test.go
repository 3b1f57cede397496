package ptxemu

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"
)

// ones is a product of matrices of ones, by a warpgroup, to which it adds once more.
const ones = `.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x) {
	.reg .pred %p<4>;
	.reg .b32 %t, %r<12>, %f<4>;
	.reg .b64 %x, %d<8>;
	.shared .align 1024 .b8 room[8192];
	ld.param.u64 %x, [x];
	mov.u32 %t, %tid.x;
	mov.u32 %r0, room;
	mad.lo.u32 %r1, %t, 64, %r0;
	mov.b32 %r2, 0x3c003c00;
	st.shared.v4.b32 [%r1], {%r2, %r2, %r2, %r2};
	st.shared.v4.b32 [%r1+16], {%r2, %r2, %r2, %r2};
	st.shared.v4.b32 [%r1+32], {%r2, %r2, %r2, %r2};
	st.shared.v4.b32 [%r1+48], {%r2, %r2, %r2, %r2};
	fence.proxy.async.shared::cta;
	bar.sync 0;
	bfe.u32 %r3, %r0, 4, 14;
	or.b32 %r3, %r3, 0x10000;
	mov.b32 %r4, 0x40000040;
	mov.b64 %d0, {%r3, %r4};
	mov.pred %p0, 0;
	mov.pred %p1, 1;
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d0, %p0, 1, 1, 0, 0;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d0, %p1, 1, 1, 0, 0;
	wgmma.commit_group.sync.aligned;
	wgmma.wait_group.sync.aligned 0;
	mad.wide.u32 %d1, %t, 16, %x;
	st.global.v4.b32 [%d1], {%f0, %f1, %f2, %f3};
	ret;
}
`

func runGroup(text string, threads int) ([]byte, error) {
	m, err := Parse(text)
	if err != nil {
		return nil, err
	}
	k, err := m.Kernel("k")
	if err != nil {
		return nil, err
	}
	memory := NewMemory()
	x, err := memory.Alloc(2048, 16)
	if err != nil {
		return nil, err
	}
	launch := Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{threads, 1, 1}, Memory: memory, Params: [][]byte{binary.LittleEndian.AppendUint64(nil, x)}, Seed: 1}
	if err := k.Launch(context.Background(), launch); err != nil {
		return nil, err
	}
	out := make([]byte, 2048)
	return out, memory.Read(x, out)
}

func TestGroupProduct(t *testing.T) {
	out, err := runGroup(ones, 128)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(out) / 4 {
		if v := math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:])); v != 32 {
			t.Fatalf("element %d is %g", i, v)
		}
	}
}

// What a GPU leaves undefined is a fault.
func TestGroupFaults(t *testing.T) {
	const wait = "wgmma.wait_group.sync.aligned 0;"
	for _, c := range []struct{ name, old, replacement, want string }{
		{"no fence", "wgmma.fence.sync.aligned;", "", "no wgmma.fence"},
		{"no wait", wait, "", "nothing waited for them"},
		{"no commit", "wgmma.commit_group.sync.aligned;", "", "nothing waited for them"},
		{"stores not shown", "fence.proxy.async.shared::cta;", "", "fence.proxy.async"},
		{"a barrier meanwhile", wait, "bar.sync 0;", "nothing waited for them"},
		{"the end meanwhile", wait, "ret;", "nothing waited for them"},
		{"written meanwhile", wait, "mov.b32 %f1, 0;" + wait, "was written while it ran"},
		{"accumulators of another", "{%f0, %f1, %f2, %f3}, %d0, %d0, %p1", "{%f1, %f0, %f2, %f3}, %d0, %d0, %p1", "one of another product"},
		{"undefined accumulators", "%d0, %d0, %p0", "%d0, %d0, %p1", "not defined"},
		{"not permuted", "mov.b32 %r4, 0x40000040;", "mov.b32 %r4, 0x40;", "layout"},
		{"rows apart", "mov.b32 %r4, 0x40000040;", "mov.b32 %r4, 0x40000080;", "layout"},
		{"another row", "or.b32 %r3, %r3, 0x10000;", "or.b32 %r3, %r3, 0x10008;", "not at the start of eight rows"},
		{"half of the points", "or.b32 %r3, %r3, 0x10000;", "or.b32 %r3, %r3, 0x10001;", "not at the start of eight rows"},
		{"outside", "or.b32 %r3, %r3, 0x10000;", "or.b32 %r3, %r3, 0x10040;", "of shared memory"},
		{"one of each lane", "mov.b32 %r4, 0x40000040;", "mov.b32 %r4, 0x40000040; add.u32 %r3, %r3, %t;", "another lane's"},
		{"one of each warp", "mov.b32 %r4, 0x40000040;", "mov.b32 %r4, 0x40000040; shr.u32 %r5, %t, 5; mad.lo.u32 %r3, %r5, 2, %r3;", "another warp of the warpgroup"},
		{"transposed", "%p1, 1, 1, 0, 0", "%p1, 1, 1, 0, 1", "transposed"},
		{"swapped types", "m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d0, %p1", "m64n8k16.f16.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d0, %p1", "into f32"},
		{"an odd shape", "m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d0, %p1", "m64n12k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d0, %p1", "shape"},
	} {
		text := strings.Replace(ones, c.old, c.replacement, 1)
		if text == ones {
			t.Fatalf("%s: nothing changed", c.name)
		}
		if _, err := runGroup(text, 128); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if _, err := runGroup(ones, 64); err == nil || !strings.Contains(err.Error(), "partial warpgroup") {
		t.Errorf("half of a warpgroup: %v", err)
	}
}
