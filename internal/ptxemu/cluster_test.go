package ptxemu

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// clusterSum has blocks of 64 threads in clusters of 4 add up numbers of theirs: each leaves its own
// in the shared memory of the first block, which stores the sums.
const clusterSum = `.version 7.8
.target sm_90
.address_size 64

.visible .entry k(.param .u64 out)
.explicitcluster
.reqnctapercluster 4, 1, 1
{
	.reg .pred %p<2>;
	.reg .b32 %r<12>;
	.reg .b64 %d<3>;
	.shared .align 16 .b8 room[1024];
	ld.param.u64 %d0, [out];
	mov.u32 %r0, %ctaid.x;
	mov.u32 %r1, %tid.x;
	and.b32 %r2, %r0, 3;
	barrier.cluster.arrive.aligned; // begin
	barrier.cluster.wait.aligned; // begun
	mad.lo.s32 %r3, %r2, 64, %r1;
	mov.u32 %r4, room;
	mad.lo.s32 %r4, %r3, 4, %r4;
	mapa.shared::cluster.u32 %r5, %r4, 0;
	st.shared::cluster.b32 [%r5], %r3;
	barrier.cluster.arrive.aligned; // left
	setp.ne.u32 %p0, %r2, 0;
	@%p0 bra END;
	barrier.cluster.wait.aligned; // there
	mov.u32 %r6, room;
	mad.lo.s32 %r6, %r1, 4, %r6;
	ld.shared.b32 %r7, [%r6];
	ld.shared.b32 %r8, [%r6+256];
	add.s32 %r7, %r7, %r8;
	ld.shared.b32 %r8, [%r6+512];
	add.s32 %r7, %r7, %r8;
	ld.shared.b32 %r8, [%r6+768];
	add.s32 %r7, %r7, %r8;
	mad.lo.s32 %r9, %r0, 16, %r1;
	mul.wide.u32 %d1, %r9, 4;
	add.s64 %d1, %d1, %d0;
	st.global.b32 [%d1], %r7;
END:
	ret;
}
`

func runClusters(t *testing.T, text string, blocks int, seed uint64) ([]byte, error) {
	t.Helper()
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	memory := NewMemory()
	out, err := memory.Alloc(512, 16)
	if err != nil {
		t.Fatal(err)
	}
	err = m.Kernels()[0].Launch(context.Background(), Launch{Grid: [3]int{blocks, 1, 1}, Block: [3]int{64, 1, 1}, Memory: memory,
		Params: [][]byte{binary.LittleEndian.AppendUint64(nil, out)}, Seed: seed})
	data := make([]byte, 512)
	if err == nil {
		err = memory.Read(out, data)
	}
	return data, err
}

func TestClusters(t *testing.T) {
	for seed := range uint64(20) {
		data, err := runClusters(t, clusterSum, 8, seed)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 128 {
			if got := int(binary.LittleEndian.Uint32(data[4*i:])); got != 64*6+4*(i%64) {
				t.Fatalf("seed %d: element %d is %d", seed, i, got)
			}
		}
	}
	if _, err := runClusters(t, clusterSum, 6, 0); err == nil || !strings.Contains(err.Error(), "6 blocks in clusters of 4") {
		t.Error(err)
	}
}

// What a GPU would do without a word is found, whatever the order in which blocks run.
func TestClustersThatAreRefused(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"barrier.cluster.arrive.aligned; // begin\n", "", "waits for the cluster and has not arrived"},
		{"barrier.cluster.arrive.aligned; // begin\n\tbarrier.cluster.wait.aligned; // begun\n", "", "may not have begun"},
		{"barrier.cluster.wait.aligned; // begun\n", "", "may not have begun|has not waited"},
		{"barrier.cluster.wait.aligned; // there\n", "", "a race|is not defined"},
		{"barrier.cluster.wait.aligned; // there\n", "bar.sync 0;\n", "a race|is not defined"},
		{"%r4, 0;", "%r4, 4;", "block 4 of a cluster of 4"},
		// The last blocks write what the first one may have read, or left behind.
		{"barrier.cluster.wait.aligned; // there\n", "barrier.cluster.wait.aligned;\n\tmapa.shared::cluster.u32 %r5, %r4, 3;\n\tst.shared::cluster.b32 [%r5], %r3;\n", "may end before others"},
		{"barrier.cluster.arrive.aligned; // left\n", "barrier.cluster.arrive.aligned;\n\tst.shared::cluster.b32 [%r5], %r3;\n", "a race"},
	} {
		text := strings.Replace(clusterSum, c.from, c.to, 1)
		if text == clusterSum {
			t.Fatalf("no %q", c.from)
		}
		found := 0
		for seed := range uint64(10) {
			_, err := runClusters(t, text, 4, seed)
			if err != nil && slices.ContainsFunc(strings.Split(c.want, "|"), func(want string) bool { return strings.Contains(err.Error(), want) }) {
				found++
			}
		}
		if found < 10 {
			t.Errorf("%q for %q: %q %d times of 10", c.to, c.from, c.want, found)
		}
	}
}
