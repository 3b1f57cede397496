package native

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"tgc/internal/pages"
	_ "tgc/internal/steadyseed"
	"tgc/runtime/cpu/llvmc"
	"tgc/runtime/cpu/object"
)

var update = flag.Bool("update", false, "rewrite testdata/kernels_*.o")

// testMachine is what the stored kernels of one architecture are made from.
type testMachine struct {
	options llvmc.Options
	// assembly replaces the {{words}} of testdata/kernels.ll. spoil loads
	// from address $0 with all registers changed that a caller expects kept.
	spoil, multiply string
}

var testMachines = map[string]testMachine{
	"amd64": {
		options:  llvmc.Options{Triple: "x86_64-pc-linux-gnu", CPU: "x86-64"},
		spoil:    `"xor %rbx, %rbx\0Axor %r12, %r12\0Axor %r13, %r13\0Axor %r14, %r14\0Axor %r15, %r15\0Axor %ebp, %ebp\0Astd\0Amovq ($0), %rax\0Acld", "r,~{rax},~{rbx},~{r12},~{r13},~{r14},~{r15},~{rbp},~{memory},~{dirflag}"`,
		multiply: `"imul %rax, %rax", "~{rax},~{flags}"`,
	},
	"arm64": {
		options: llvmc.Options{Triple: "aarch64-unknown-linux-gnu", CPU: "generic"},
		spoil: `"mov x19, #0\0Amov x20, #0\0Amov x21, #0\0Amov x22, #0\0Amov x23, #0\0Amov x24, #0\0Amov x25, #0\0Amov x26, #0\0Amov x27, #0\0Amov x28, #0\0A` +
			`movi d8, #0\0Amovi d9, #0\0Amovi d15, #0\0Aldr x1, [$0]", "r,~{x1},~{x19},~{x20},~{x21},~{x22},~{x23},~{x24},~{x25},~{x26},~{x27},~{x28},~{d8},~{d9},~{d15},~{memory}"`,
		multiply: `"mul x0, x0, x0", "~{x0}"`,
	},
}

// kernels loads testdata/kernels.ll, from the stored object: these tests
// need no LLVM. With -update all machines' objects are made anew.
func kernels(t testing.TB) func(name string) uintptr {
	t.Helper()
	if *update {
		updateKernels(t)
	}
	file, err := os.ReadFile("testdata/kernels_" + runtime.GOARCH + ".o")
	if err != nil {
		t.Skipf("no stored kernels for %s", runtime.GOARCH)
	}
	return entries(t, file)
}

func updateKernels(t testing.TB) {
	t.Helper()
	source, err := os.ReadFile("testdata/kernels.ll")
	if err != nil {
		t.Fatal(err)
	}
	for arch, m := range testMachines {
		m.options.Features, m.options.Passes, m.options.Workers = llvmc.NoFeatures, llvmc.NoPasses, 1
		ir := strings.NewReplacer("{{spoil}}", m.spoil, "{{multiply}}", m.multiply).Replace(string(source))
		if err := os.WriteFile("testdata/kernels_"+arch+".o", compile(t, m.options, ir), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func compile(t testing.TB, options llvmc.Options, ir string) []byte {
	t.Helper()
	c, err := llvmc.Start(t.Context(), options)
	if errors.Is(err, llvmc.ErrNoLLVM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	file, err := c.Compile(t.Context(), []byte(ir))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func entries(t testing.TB, file []byte) func(name string) uintptr {
	t.Helper()
	o, err := object.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return func(name string) uintptr {
		addr, ok := o.Entry(name)
		if !ok {
			t.Fatalf("no kernel %q", name)
		}
		return addr
	}
}

func newPool(t testing.TB, workers int) *Pool {
	t.Helper()
	p, err := NewPool(Options{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func newStep(t testing.TB, launches ...[]Call) *Step {
	t.Helper()
	s, err := NewStep(launches)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Free() })
	return s
}

// numbers is an array outside the Go heap.
func numbers(t testing.TB, n int) (values []int64, address uint64) {
	t.Helper()
	m, err := Alloc(int64(8 * n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Free() })
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(m.Bytes()))), n), uint64(m.Addr())
}

func run(t testing.TB, p *Pool, s *Step) {
	t.Helper()
	if err := p.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func TestEveryUnitRunsOnce(t *testing.T) {
	kernel := kernels(t)
	a, address := numbers(t, 1000)
	for _, workers := range []int{1, 2, 3, 7} {
		p := newPool(t, workers)
		for _, units := range []int64{0, 1, 2, 3, 63, 64, 65, 1000} {
			for _, granularity := range []int64{0, 1, 4, 100, 5000} {
				clear(a)
				s := newStep(t, []Call{{Fn: kernel("increment"), Args: []uint64{address}, Units: units, Granularity: granularity}})
				run(t, p, s)
				for i, v := range a {
					if want := b2i(int64(i) < units); v != want {
						t.Fatalf("%d workers, %d units of %d: unit %d ran %d times, want %d", workers, units, granularity, i, v, want)
					}
				}
			}
		}
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// TestSlabs compares the bounds that machine code computes with slab's.
func TestSlabs(t *testing.T) {
	kernel := kernels(t)
	a, address := numbers(t, 1000)
	pools := map[int]*Pool{}
	for w := 1; w <= 5; w++ {
		pools[w] = newPool(t, w)
	}
	rapid.Check(t, func(r *rapid.T) {
		workers := rapid.IntRange(1, 5).Draw(r, "workers")
		s, err := NewStep([][]Call{{{
			Fn: kernel("bounds"), Args: []uint64{address},
			Units:       rapid.Int64Range(0, 999).Draw(r, "units"),
			Granularity: rapid.Int64Range(1, 70).Draw(r, "granularity"),
		}}})
		if err != nil {
			r.Fatal(err)
		}
		defer s.Free()
		clear(a)
		if err := pools[workers].Run(context.Background(), s); err != nil {
			r.Fatal(err)
		}
		want := make([]int64, len(a))
		end := int64(0)
		for w := range int64(workers) {
			lo, hi := slab(&s.records[0], w, int64(workers))
			if lo >= hi {
				continue
			}
			if lo != end || lo%s.records[0].granularity != 0 {
				r.Fatalf("slab of worker %d starts at %d, the one before ends at %d", w, lo, end)
			}
			want[lo], end = hi, hi
		}
		if end != s.records[0].units {
			r.Fatalf("the slabs end at %d of %d", end, s.records[0].units)
		}
		for i := range a {
			if a[i] != want[i] {
				r.Fatalf("slab that starts at %d: ends at %d, want %d", i, a[i], want[i])
			}
		}
	})
}

// TestBarrierOrder has each launch read what other workers wrote in the
// launch before.
func TestBarrierOrder(t *testing.T) {
	kernel := kernels(t)
	const n, depth = 64, 501
	a, x := numbers(t, n)
	b, y := numbers(t, n)
	for _, workers := range []int{1, 2, 4} {
		p := newPool(t, workers)
		launches := make([][]Call, depth)
		for i := range launches {
			from, to := x, y
			if i%2 == 1 {
				from, to = y, x
			}
			launches[i] = []Call{{Fn: kernel("reverse"), Args: []uint64{to, from, n}, Units: n}}
		}
		s := newStep(t, launches...)
		for range 20 {
			clear(a)
			run(t, p, s)
			for i, v := range b {
				if v != depth {
					t.Fatalf("%d workers: b[%d] is %d after %d launches", workers, i, v, depth)
				}
			}
		}
	}
}

// TestSerialLaunchesNeedNoBarrier checks where barriers are left out and
// that launches still see each other's results.
func TestSerialLaunchesNeedNoBarrier(t *testing.T) {
	kernel := kernels(t)
	const n = 8
	a, x := numbers(t, n)
	b, y := numbers(t, n)
	one := func(to, from uint64) []Call {
		return []Call{{Fn: kernel("reverse"), Args: []uint64{to, from, n}, Units: n, Granularity: n}}
	}
	many := func(to, from uint64) []Call {
		return []Call{{Fn: kernel("reverse"), Args: []uint64{to, from, n}, Units: n}}
	}
	s := newStep(t, many(y, x), one(x, y), one(y, x), many(x, y), one(y, x))
	flags := func() string {
		var text strings.Builder
		for i := range s.records {
			fmt.Fprint(&text, s.records[i].flags)
		}
		return text.String()
	}
	if got := flags(); got != "10111" {
		t.Errorf("barriers: got %s, want 10111", got)
	}
	p := newPool(t, 2)
	for range 100 {
		clear(a)
		run(t, p, s)
		for i, v := range b {
			if v != 5 {
				t.Fatalf("b[%d] is %d after 5 launches", i, v)
			}
		}
	}
	if err := s.SetUnits(3, 1); err != nil {
		t.Fatal(err)
	}
	if got := flags(); got != "10001" {
		t.Errorf("barriers with a shorter call 3: got %s, want 10001", got)
	}
}

// TestManyStepsUnderGC runs 10,000 steps of small kernels while the
// collector runs all the time.
func TestManyStepsUnderGC(t *testing.T) {
	kernel := kernels(t)
	a, address := numbers(t, 16)
	p := newPool(t, 2)
	launch := []Call{{Fn: kernel("increment"), Args: []uint64{address}, Units: 16}}
	s := newStep(t, launch, launch, launch)
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	stop := make(chan struct{})
	var garbage sync.WaitGroup
	garbage.Go(func() {
		var keep [64][]byte
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				keep[i%len(keep)] = make([]byte, 64<<10)
				if i%256 == 0 {
					runtime.GC()
				}
			}
		}
	})
	const steps = 10_000
	for range steps {
		run(t, p, s)
	}
	close(stop)
	garbage.Wait()
	for i, v := range a {
		if v != 3*steps {
			t.Errorf("a[%d] is %d, want %d", i, v, 3*steps)
		}
	}
}

func TestFaults(t *testing.T) {
	kernel := kernels(t)
	a, address := numbers(t, 64)
	truncated := truncatedFile(t)
	trap := syscall.SIGILL // what llvm.trap raises
	if runtime.GOARCH == "arm64" {
		trap = syscall.SIGTRAP
	}
	for _, workers := range []int{1, 2} {
		p := newPool(t, workers)
		good := newStep(t, []Call{{Fn: kernel("increment"), Args: []uint64{address}, Units: 64}})
		for _, test := range []struct {
			name    string
			call    Call
			signal  syscall.Signal
			address uintptr
			worker  int
		}{
			{"null on worker 0", Call{Fn: kernel("read_at"), Args: []uint64{8, 0}, Units: 2}, syscall.SIGSEGV, 8, 0},
			{"unmapped on the last worker", Call{Fn: kernel("read_at"), Args: []uint64{0xdead0000, 1}, Units: 2}, syscall.SIGSEGV, 0xdead0000, workers - 1},
			{"non-canonical address", Call{Fn: kernel("read_at"), Args: []uint64{1 << 60, 1}, Units: 2}, syscall.SIGSEGV, 0, workers - 1},
			{"inside memset", Call{Fn: kernel("set_at"), Args: []uint64{0xdead0000, 100}, Units: 1}, syscall.SIGSEGV, 0xdead0000, 0},
			{"truncated file", Call{Fn: kernel("read_at"), Args: []uint64{uint64(truncated), 1}, Units: 2}, syscall.SIGBUS, truncated, workers - 1},
			{"division by zero", Call{Fn: kernel("divide"), Args: []uint64{address, 0}, Units: 1}, syscall.SIGFPE, 0, 0},
			{"illegal instruction", Call{Fn: kernel("illegal"), Units: 1}, trap, 0, 0},
		} {
			t.Run(fmt.Sprintf("%s of %d", test.name, workers), func(t *testing.T) {
				if test.signal == syscall.SIGFPE && runtime.GOARCH == "arm64" {
					t.Skip("division by zero is 0 on arm64")
				}
				test.call.Name = "the bad kernel"
				inc := []Call{{Fn: kernel("increment"), Args: []uint64{address}, Units: 64, Name: "good"}}
				s := newStep(t, inc, []Call{inc[0], test.call, inc[0]}, inc, inc)
				for range 3 {
					var fault *FaultError
					if err := p.Run(t.Context(), s); !errors.As(err, &fault) {
						t.Fatalf("got %v, want a FaultError", err)
					}
					if fault.Signal != test.signal || fault.Kernel != "the bad kernel" || fault.Call != 2 || fault.Worker != test.worker {
						t.Errorf("got %v, want %v in call 2 of worker %d", fault, test.signal, test.worker)
					}
					if test.signal != syscall.SIGFPE && test.signal != trap && fault.Address != test.address {
						t.Errorf("got %v, want address %#x", fault, test.address)
					}
					clear(a)
					run(t, p, good)
					for i, v := range a {
						if v != 1 {
							t.Fatalf("the step after the fault: a[%d] is %d, want 1", i, v)
						}
					}
				}
			})
		}
	}
}

// truncatedFile is the address of a mapped page behind the end of its file.
func truncatedFile(t *testing.T) uintptr {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	page := os.Getpagesize()
	if err := file.Truncate(int64(page)); err != nil {
		t.Fatal(err)
	}
	mapped, err := pages.MapFile(file, page)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pages.Unmap(mapped) })
	if err := file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	return uintptr(unsafe.Pointer(&mapped[0]))
}

// TestStackOverflowOfAWorker: worker 1 has its own signal stack.
func TestStackOverflowOfAWorker(t *testing.T) {
	kernel := kernels(t)
	p := newPool(t, 2)
	s := newStep(t, []Call{{Fn: kernel("nothing"), Units: 1}, {Fn: kernel("recurse"), Units: 2, Name: "recurse"}})
	var fault *FaultError
	if err := p.Run(t.Context(), s); !errors.As(err, &fault) || fault.Signal != syscall.SIGSEGV || fault.Kernel != "recurse" {
		t.Fatalf("got %v, want a SIGSEGV of recurse", err)
	}
}

// TestGoFaultsStillPanic: the guard passes Go's own faults on.
func TestGoFaultsStillPanic(t *testing.T) {
	kernel := kernels(t)
	p := newPool(t, 2)
	s := newStep(t, []Call{{Fn: kernel("read_at"), Args: []uint64{8, 0}, Units: 2}})
	for range 3 {
		if err := p.Run(t.Context(), s); err == nil {
			t.Fatal("no fault")
		}
		if got := recovered(func() { var p *int; *p = 1 }); !strings.Contains(got, "nil pointer") {
			t.Fatalf("nil dereference: recovered %q", got)
		}
		zero := int(a0)
		if got := recovered(func() { _ = 1 / zero }); !strings.Contains(got, "divide by zero") {
			t.Fatalf("division: recovered %q", got)
		}
	}
}

var a0 = int64(0) // a zero the compiler does not see

func recovered(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}

func TestCancel(t *testing.T) {
	kernel := kernels(t)
	for _, workers := range []int{1, 2} {
		p := newPool(t, workers)
		a, address := numbers(t, 4)
		launches := make([][]Call, 1000) // about 10 s if not cancelled
		for i := range launches {
			launches[i] = []Call{{Fn: kernel("slow"), Args: []uint64{10_000_000}, Units: 4}}
		}
		launches = append(launches, []Call{{Fn: kernel("increment"), Args: []uint64{address}, Units: 4}})
		s := newStep(t, launches...)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("enough"))
		defer cancel()
		begin := time.Now()
		err := p.Run(ctx, s)
		if err == nil || err.Error() != "enough" {
			t.Errorf("%d workers: got %v, want the context's cause", workers, err)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%d workers: the cancelled step took %v", workers, took)
		}
		if a[0] != 0 {
			t.Errorf("%d workers: the last launch ran", workers)
		}
		if err := p.Run(ctx, s); err == nil {
			t.Error("a step ran with an ended context")
		}
		short := newStep(t, launches[len(launches)-1])
		ctx, cancel = context.WithCancel(t.Context())
		if err := p.Run(ctx, short); err != nil || a[0] != 1 || a[3] != 1 {
			t.Errorf("%d workers: the step after: %v, %v", workers, err, a)
		}
		cancel()
	}
}

func TestProfile(t *testing.T) {
	kernel := kernels(t)
	for _, workers := range []int{1, 2} {
		p := newPool(t, workers)
		slow := func(n uint64) Call { return Call{Fn: kernel("slow"), Args: []uint64{n}, Units: int64(workers)} }
		s := newStep(t, []Call{slow(1000), slow(8_000_000)}, []Call{{Fn: kernel("nothing"), Units: 1}}, []Call{slow(2_000_000)})
		begin := time.Now()
		times, err := p.Profile(t.Context(), s)
		total := time.Since(begin)
		if err != nil || len(times) != 4 {
			t.Fatalf("%d workers: %v, %v", workers, times, err)
		}
		var sum time.Duration
		for _, took := range times {
			sum += took
		}
		nothing := times[2] // may take less than the clock tells apart
		if sum > total || nothing < 0 || min(times[0], times[1], times[3]) <= 0 {
			t.Errorf("%d workers: times %v sum to %v of %v", workers, times, sum, total)
		}
		run(t, p, s) // and back without stamps
	}
}

func TestSleepingWorkersWake(t *testing.T) {
	kernel := kernels(t)
	a, address := numbers(t, 2)
	p, err := NewPool(Options{Workers: 2, Spin: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := newStep(t, []Call{{Fn: kernel("increment"), Args: []uint64{address}, Units: 2}})
	for i := range int64(200) {
		if i%2 == 0 {
			time.Sleep(time.Duration(i) * time.Microsecond) // at times just as the worker falls asleep
		}
		run(t, p, s)
		if a[0] != i+1 || a[1] != i+1 {
			t.Fatalf("after step %d: %v", i+1, a)
		}
	}
}

func TestConcurrentRunsAndPools(t *testing.T) {
	kernel := kernels(t)
	shared := newPool(t, 2)
	var group sync.WaitGroup
	for range 4 {
		a, address := numbers(t, 32)
		s := newStep(t, []Call{{Fn: kernel("increment"), Args: []uint64{address}, Units: 32}})
		bad := newStep(t, []Call{{Fn: kernel("read_at"), Args: []uint64{0, 1}, Units: 2}})
		own := newPool(t, 2)
		group.Go(func() {
			for range 50 {
				for _, p := range []*Pool{shared, own} {
					if err := p.Run(t.Context(), s); err != nil {
						t.Error(err)
					}
					if err := p.Run(t.Context(), bad); err == nil {
						t.Error("no fault")
					}
				}
			}
			for i, v := range a {
				if v != 100 {
					t.Errorf("a[%d] is %d, want 100", i, v)
				}
			}
		})
	}
	group.Wait()
}

func TestPoolsComeAndGo(t *testing.T) {
	kernel := kernels(t)
	s := newStep(t, []Call{{Fn: kernel("nothing"), Units: 2}})
	before := threads(t)
	for range 100 {
		p, err := NewPool(Options{Workers: 3})
		if err != nil {
			t.Fatal(err)
		}
		run(t, p, s)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if err := p.Run(t.Context(), s); !errors.Is(err, os.ErrClosed) {
			t.Fatalf("run after Close: %v", err)
		}
	}
	if after := threads(t); after > before+20 {
		t.Errorf("%d threads before, %d after", before, after)
	}
}

func threads(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip(err)
	}
	return len(list)
}

func TestBadSteps(t *testing.T) {
	for name, launches := range map[string][][]Call{
		"empty":          nil,
		"empty launches": {{}, {}},
		"no function":    {{{Units: 1}}},
		"negative units": {{{Fn: 1, Units: -1}}},
		"too many units": {{{Fn: 1, Units: math.MaxInt64}}},
	} {
		if _, err := NewStep(launches); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, workers := range []int{-1, maxWorkers + 1} {
		if _, err := NewPool(Options{Workers: workers}); err == nil {
			t.Errorf("%d workers: no error", workers)
		}
	}
}

func TestAlloc(t *testing.T) {
	for _, size := range []int64{0, 1, 64, 4096, 4097, hugePage - 1, hugePage, 3*hugePage + 5} {
		m, err := Alloc(size)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(m.Bytes())) != size || m.Addr()%64 != 0 || size >= hugePage && m.Addr()%hugePage != 0 {
			t.Errorf("%d bytes: got %d at %#x", size, len(m.Bytes()), m.Addr())
		}
		for i := range m.Bytes() {
			m.Bytes()[i]++
		}
		if err := errors.Join(m.Free(), m.Free()); err != nil {
			t.Error(err)
		}
	}
	if _, err := Alloc(-1); err == nil {
		t.Error("negative size: no error")
	}
}

// TestGuardPage reads just before an allocation, where there are zeros, and behind it.
func TestGuardPage(t *testing.T) {
	kernel := kernels(t)
	p := newPool(t, 1)
	for _, size := range []int64{4096, hugePage, hugePage + 4096} {
		m, err := Alloc(size)
		if err != nil {
			t.Fatal(err)
		}
		end := m.Addr() + uintptr(size)
		run(t, p, newStep(t, []Call{{Fn: kernel("read_at"), Args: []uint64{uint64(end - 8), 0}, Units: 1}}))
		run(t, p, newStep(t, []Call{{Fn: kernel("read_at"), Args: []uint64{uint64(m.Addr() - 8), 0}, Units: 1}}))
		var fault *FaultError
		err = p.Run(t.Context(), newStep(t, []Call{{Fn: kernel("read_at"), Args: []uint64{uint64(end), 0}, Units: 1}}))
		if !errors.As(err, &fault) || fault.Address != end {
			t.Errorf("%d bytes: reading behind them: %v", size, err)
		}
		if err := m.Free(); err != nil {
			t.Error(err)
		}
	}
}

func benchmarkSteps(b *testing.B, workers, launches int) {
	kernel := kernels(b)
	p := newPool(b, workers)
	step := make([][]Call, launches)
	for i := range step {
		step[i] = []Call{{Fn: kernel("nothing"), Units: int64(max(workers, 2))}}
	}
	s := newStep(b, step...)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Run(ctx, s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(launches), "ns/launch")
}

func BenchmarkStep(b *testing.B) {
	for _, workers := range []int{1, 2} {
		for _, launches := range []int{1, 1000} {
			b.Run(fmt.Sprintf("workers=%d/launches=%d", workers, launches), func(b *testing.B) {
				benchmarkSteps(b, workers, launches)
			})
		}
	}
}
