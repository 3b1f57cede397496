package ptxemu

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// header and footer make a module of a kernel's body. The kernel has 64
// threads and a buffer of 64 words, of which the first 32 hold 0, 3, 6, ..; %x
// is its address and %t the thread.
const header = `.version 7.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x) {
	.reg .pred %p<4>;
	.reg .b16 %h<4>;
	.reg .b32 %t, %r<8>;
	.reg .b64 %x, %d<8>;
	.shared .align 16 .b8 room[256];
	.local .align 8 .b8 own[16];
	ld.param.u64 %x, [x];
	mov.u32 %t, %tid.x;
`

const footer = "}\n"

func runBody(body string, seed uint64) ([]byte, error) {
	m, err := Parse(header + body + footer)
	if err != nil {
		return nil, err
	}
	k, err := m.Kernel("k")
	if err != nil {
		return nil, err
	}
	memory := NewMemory()
	x, err := memory.Alloc(256, 16)
	if err != nil {
		return nil, err
	}
	var words []byte
	for i := range uint32(32) {
		words = binary.LittleEndian.AppendUint32(words, 3*i)
	}
	if err := memory.Write(x, words); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = k.Launch(ctx, Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{64, 1, 1}, Memory: memory, Seed: seed,
		Params: [][]byte{binary.LittleEndian.AppendUint64(nil, x)}})
	if err != nil {
		return nil, err
	}
	out := make([]byte, 256)
	return out, memory.Read(x, out)
}

// testdata/*.txtar: pairs of NAME.ptx, a body, and NAME.out: the first words
// of the buffer, or the error.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := make(map[string]string)
		for _, f := range archive.Files {
			want[f.Name] = string(f.Data)
		}
		var out []txtar.File
		for _, f := range archive.Files {
			name, ok := strings.CutSuffix(f.Name, ".ptx")
			if !ok {
				continue
			}
			t.Run(name, func(t *testing.T) {
				got := outcome(string(f.Data))
				out = append(out, f, txtar.File{Name: name + ".out", Data: []byte(got)})
				if diff := cmp.Diff(want[name+".out"], got); diff != "" && !*update {
					t.Errorf("differs (-want +got):\n%s", diff)
				}
			})
		}
		if *update {
			archive.Files = out
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func outcome(body string) string {
	words, err := runBody(body, 1)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	text := ""
	for i := range 12 {
		text += fmt.Sprintf("%x ", binary.LittleEndian.Uint32(words[4*i:]))
	}
	return strings.TrimSpace(text) + "\n"
}

// Whatever the order of warps and sides of branches, the outcome is the same.
func TestOrderDoesNotMatter(t *testing.T) {
	const body = `
	shr.u32 %r0, %t, 5;
	mov.u32 %r1, 0;
	mov.u32 %r2, 0;
L1:
	setp.ge.u32 %p0, %r1, %t;
	@%p0 bra L3;
	and.b32 %r3, %r1, 1;
	setp.eq.u32 %p1, %r3, 0;
	@%p1 bra L2;
	add.u32 %r2, %r2, %r1;
L2:
	add.u32 %r1, %r1, 1;
	bra L1;
L3:
	shfl.sync.bfly.b32 %r4, %r2, 1, 31, -1;
	add.u32 %r2, %r2, %r4;
	shl.b32 %r5, %t, 2;
	mov.u32 %r6, room;
	add.u32 %r6, %r6, %r5;
	st.shared.b32 [%r6], %r2;
	bar.sync 0;
	xor.b32 %r5, %r5, 252;
	mov.u32 %r6, room;
	add.u32 %r6, %r6, %r5;
	ld.shared.b32 %r2, [%r6];
	mad.wide.u32 %d0, %t, 4, %x;
	st.global.b32 [%d0], %r2;
	ret;
`
	var first []byte
	for seed := range uint64(20) {
		out, err := runBody(body, seed)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = out
		}
		if diff := cmp.Diff(first, out); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
	sum := func(n int) uint32 { // of odd numbers below n
		s := uint32(0)
		for i := range n {
			s += uint32(i % 2 * i)
		}
		return s
	}
	for i := range 64 {
		other := 63 - i
		want := sum(other) + sum(other^1)
		if got := binary.LittleEndian.Uint32(first[4*i:]); got != want {
			t.Errorf("thread %d: %d, want %d", i, got, want)
		}
	}
}

// Memory keeps apart what is allocated apart, at the alignment asked for.
func TestMemory(t *testing.T) {
	m := NewMemory()
	for _, align := range []int{1, 2, 16, 64, 256, 4096} {
		a, err := m.Alloc(100, align)
		if err != nil {
			t.Fatal(err)
		}
		if a%uint64(2*align) != uint64(align) {
			t.Errorf("address %#x for alignment %d", a, align)
		}
		if err := m.Write(a+99, []byte{1, 2}); err == nil {
			t.Error("a write past the end")
		}
		if err := m.Write(a+90, make([]byte, 10)); err != nil {
			t.Error(err)
		}
		if err := m.Free(a); err != nil {
			t.Error(err)
		}
		if err := m.Read(a, make([]byte, 1)); err == nil {
			t.Error("a read of freed memory")
		}
	}
	if m.Used() != 0 {
		t.Errorf("%d bytes in use", m.Used())
	}
	if _, err := m.Alloc(1<<40, 16); err == nil {
		t.Error("a terabyte was allocated")
	}
	if _, err := m.Alloc(1, 3); err == nil {
		t.Error("an alignment of 3")
	}
}

func TestLaunchErrors(t *testing.T) {
	m, err := Parse(header + "ret;" + footer)
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Kernel("k")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Kernel("other"); err == nil || !strings.Contains(err.Error(), `no kernel "other" (there are: k)`) {
		t.Error(err)
	}
	good := Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Memory: NewMemory(), Params: [][]byte{make([]byte, 8)}}
	for _, c := range []struct {
		change func(l *Launch)
		want   string
	}{
		{func(l *Launch) { l.Params = nil }, "0 parameters, want 1"},
		{func(l *Launch) { l.Params = [][]byte{{1}} }, "parameter 0 has 1 bytes, want 8"},
		{func(l *Launch) { l.Block[0] = 2000 }, "blocks [2000 1 1]"},
		{func(l *Launch) { l.Block = [3]int{64, 64, 1} }, "4096 threads"},
		{func(l *Launch) { l.Memory = nil }, "no memory"},
		{func(l *Launch) { l.Shared = -1 }, "dynamic shared"},
	} {
		l := good
		c.change(&l)
		if err := k.Launch(context.Background(), l); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := k.Launch(ctx, good); err == nil {
		t.Error("a cancelled launch runs")
	}
}

// What ptxas does not take is refused: the grammar of addresses has no difference.
func TestTextThatIsRefused(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"ld.global.u32 %r1, [%x-4];", `expected + or ], got "-"`},
		{"ld.global.u32 %r1, [%x+1.5];", "an offset that is no integer"},
	} {
		if _, err := Parse(header + c.body + footer); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.body, err, c.want)
		}
	}
}

// Text never panics, whether it parses or runs.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range archive.Files {
			if strings.HasSuffix(part.Name, ".ptx") {
				f.Add(header + string(part.Data) + footer)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		for _, k := range m.Kernels() {
			l := Launch{Grid: [3]int{2, 1, 1}, Block: [3]int{40, 1, 1}, Memory: NewMemory()}
			for _, n := range k.ParamSizes {
				if n > 1<<16 {
					return
				}
				l.Params = append(l.Params, make([]byte, n))
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			_ = k.Launch(ctx, l)
			cancel()
		}
	})
}

// BenchmarkInstruction reports the time of one instruction of a full warp.
func BenchmarkInstruction(b *testing.B) {
	const rounds = 1000
	body := fmt.Sprintf(`
	mov.u32 %%r0, 0;
	mov.b32 %%r1, 0f3f800000;
L1:
	fma.rn.f32 %%r1, %%r1, 0f3f000000, 0f3f800000;
	and.b32 %%r2, %%r0, 252;
	cvt.u64.u32 %%d0, %%r2;
	and.b64 %%d0, %%d0, 127;
	and.b64 %%d0, %%d0, -4;
	add.s64 %%d1, %%x, %%d0;
	ld.global.b32 %%r3, [%%d1];
	add.s32 %%r0, %%r0, 1;
	setp.lt.s32 %%p0, %%r0, %d;
	@%%p0 bra L1;
	ret;
`, rounds)
	for b.Loop() {
		if _, err := runBody(body, 1); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*10*rounds), "ns/instr")
}

// The text of another compiler runs as well.
func TestCompiledFromCUDA(t *testing.T) {
	text, err := os.ReadFile("testdata/nvrtc_matvec.ptx")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Kernel("matvec")
	if err != nil {
		t.Fatal(err)
	}
	const rows, words = 3, 200
	memory := NewMemory()
	var params [][]byte
	place := func(b []byte, write bool) uint64 {
		a, err := memory.Alloc(int64(len(b)), 4)
		if err == nil && write {
			err = memory.Write(a, b)
		}
		if err != nil {
			t.Fatal(err)
		}
		params = append(params, binary.LittleEndian.AppendUint64(nil, a))
		return a
	}
	weights, x := make([]byte, 4*rows*words), make([]byte, 0, 16*words)
	for i := range weights {
		weights[i] = byte(i*37 + i/11)
	}
	for i := range 4 * words {
		x = binary.LittleEndian.AppendUint32(x, math.Float32bits(float32(i%5)-2))
	}
	place(weights, true)
	place(x, true)
	y := place(make([]byte, 4*rows), false)
	params = append(params, binary.LittleEndian.AppendUint64(nil, words))
	err = k.Launch(context.Background(), Launch{Grid: [3]int{rows, 1, 1}, Block: [3]int{128, 1, 1}, Memory: memory, Params: params, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 4*rows)
	if err := memory.Read(y, out); err != nil {
		t.Fatal(err)
	}
	for row := range rows {
		sum := float32(0) // small integers: exact in any order
		for i := range 4 * words {
			sum += (float32(weights[4*words*row+i]) - 32) * (float32(i%5) - 2)
		}
		want := sum/3 + float32(math.Sqrt(math.Abs(float64(sum))))
		if got := math.Float32frombits(binary.LittleEndian.Uint32(out[4*row:])); got != want {
			t.Errorf("row %d: %g, want %g", row, got, want)
		}
	}
}

// A kernel that ran in one memory runs in another with allocations at the same
// addresses; freed memory is no memory.
func TestLaunchInAnotherMemory(t *testing.T) {
	m, err := Parse(header + "\tst.global.u32 [%x], 7;\n\tret;\n" + footer)
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Kernel("k")
	if err != nil {
		t.Fatal(err)
	}
	var memory *Memory
	launch := func(address uint64) error {
		return k.Launch(t.Context(), Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Memory: memory,
			Params: [][]byte{binary.LittleEndian.AppendUint64(nil, address)}})
	}
	var address uint64
	for range 2 {
		memory = NewMemory()
		if address, err = memory.Alloc(4, 4); err != nil {
			t.Fatal(err)
		}
		if err := launch(address); err != nil {
			t.Fatal(err)
		}
		out := make([]byte, 4)
		if err := memory.Read(address, out); err != nil || out[0] != 7 {
			t.Fatalf("got %v, %v", out, err)
		}
	}
	if err := memory.Free(address); err != nil {
		t.Fatal(err)
	}
	if err := launch(address); err == nil {
		t.Error("a store to freed memory")
	}
}
