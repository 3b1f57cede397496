package ptxemu

import (
	"strings"
	"testing"
)

// neighbours lets each thread copy 16 bytes to shared memory, and store what the next one has copied.
const neighbours = `.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x) {
	.reg .b32 %t, %r<12>;
	.reg .b64 %x, %d<8>;
	.shared .align 128 .b8 room[1024];
	ld.param.u64 %x, [x];
	mov.u32 %t, %tid.x;
	mad.wide.u32 %d1, %t, 16, %x;
	mov.b32 %r9, 7;
	st.global.v4.b32 [%d1], {%r9, %t, %r9, %r9};
	mov.u32 %r0, room;
	mad.lo.u32 %r1, %t, 16, %r0;
	cp.async.cg.shared.global [%r1], [%d1], 16;
	cp.async.wait_all;
	bar.sync 0;
	add.u32 %r2, %t, 1;
	and.b32 %r2, %r2, 31;
	mad.lo.u32 %r3, %r2, 16, %r0;
	ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r3];
	st.global.v4.b32 [%d1], {%r4, %r5, %r6, %r7};
	ret;
}
`

func TestCopies(t *testing.T) {
	out, err := runGroup(neighbours, 32)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 32 {
		if out[16*i] != 7 || int(out[16*i+4]) != (i+1)%32 {
			t.Fatalf("thread %d has stored %v", i, out[16*i:][:16])
		}
	}
}

// What a GPU leaves undefined is a fault.
func TestCopyFaults(t *testing.T) {
	const wait, start = "cp.async.wait_all;", "cp.async.cg.shared.global [%r1], [%d1], 16;"
	for _, c := range []struct{ name, old, replacement, want string }{
		{"no wait", wait, "", "not defined"},
		{"no wait before the end", "st.global.v4.b32 [%d1], {%r4, %r5, %r6, %r7};", "cp.async.ca.shared.global [%r1+512], [%d1], 4;", "nothing waited for it"},
		{"a wait behind the barrier", wait + "\n\tbar.sync 0;", "bar.sync 0;" + wait, "a race"},
		{"a wait behind the load", wait, "bar.sync 0;", "not defined"},
		{"no barrier", "bar.sync 0;", "", "a race"},
		{"outside", start, "cp.async.cg.shared.global [%r1+1024], [%d1], 16;", "of shared memory"},
		{"from outside", start, "cp.async.cg.shared.global [%r1], [%d1+65536], 16;", "past the start"},
		{"from what nothing wrote", start, "cp.async.cg.shared.global [%r1], [%d1+1024], 16;", "not defined"},
		{"not aligned", start, "cp.async.cg.shared.global [%r1], [%d1+8], 16;", "not aligned"},
		{"of eight bytes past the first cache", start, "cp.async.cg.shared.global [%r1], [%d1], 8;", "a copy of 8 bytes"},
		{"of two bytes", start, "cp.async.ca.shared.global [%r1], [%d1], 2;", "a copy of 2 bytes"},
		{"groups", wait, "cp.async.commit_group;", "groups of copies"},
		{"another space", start, "cp.async.cg.shared [%r1], [%d1], 16;", "want a copy from global"},
	} {
		text := strings.Replace(neighbours, c.old, c.replacement, 1)
		if text == neighbours {
			t.Fatalf("%s: nothing changed", c.name)
		}
		if _, err := runGroup(text, 32); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}
