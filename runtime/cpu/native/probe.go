package native

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"tgc/runtime/cpu/llvmc"
	"tgc/runtime/cpu/object"
)

// MeasureRead is the rate in GB/s at which threads workers read memory that
// is far larger than the caches: the best over a few access patterns and
// repetitions. It needs libLLVM (the error wraps llvmc.ErrNoLLVM without).
//
// Figures of 2 virtual Zen 5 cores are at readPatterns: 43 GB/s, 52 on both.
func MeasureRead(ctx context.Context, threads int) (gbPerSecond float64, err error) {
	memory, err := Alloc(readBytes)
	if err != nil {
		return 0, err
	}
	defer memory.Free()
	touch(memory.Bytes())
	sums, err := Alloc(readBytes / readUnit * 8)
	if err != nil {
		return 0, err
	}
	defer sums.Free()
	for _, pattern := range readPatterns {
		var calls []Call
		for at := uint64(0); at < readBytes; at += partBytes {
			calls = append(calls, Call{Args: []uint64{uint64(memory.Addr()) + at, uint64(sums.Addr())}, Units: partBytes / readUnit})
		}
		seconds, err := probe(ctx, threads, readRepeats, pattern.ir, calls...)
		if err != nil {
			return 0, err
		}
		gbPerSecond = max(gbPerSecond, partBytes/seconds/1e9)
	}
	return gbPerSecond, nil
}

// MeasureFMA is the rate in GFLOP/s of f32 fused multiply-adds on registers
// on threads workers, two operations each: no kernel computes faster. It
// needs libLLVM.
//
// Figures of 2 virtual Zen 5 cores are at fmaUnits.
func MeasureFMA(ctx context.Context, threads int) (gflops float64, err error) {
	out, err := Alloc(8 << 10)
	if err != nil {
		return 0, err
	}
	defer out.Free()
	units := int64(fmaUnits * threads)
	shape := fmaShape{}
	seconds, err := probe(ctx, threads, fmaRepeats, func(v vectors) string {
		shape = fmaShapeOf(v)
		return shape.ir()
	}, Call{Args: []uint64{uint64(out.Addr())}, Units: units})
	if err != nil {
		return 0, err
	}
	return float64(units) * float64(shape.flopsPerUnit()) / seconds / 1e9, nil
}

const (
	// readBytes is 16 times the largest last-level cache share measured on. It is
	// read in parts of partBytes, and the fastest part counts: one that is shorter
	// than a time slice finds a moment without other processes.
	readBytes   = 512 << 20
	partBytes   = 64 << 20
	readUnit    = 64 << 10 // bytes of one work unit
	readRepeats = 5

	// fmaUnits is the work of one thread: 2 ms at 100 GFLOP/s. Measured on
	// Zen 5: 261 GFLOP/s a thread, 520 on two (2 FMAs of 512 bits a cycle).
	fmaUnits   = 25
	fmaRepeats = 100
	// fmaLoop is the number of rounds over all accumulators in a unit.
	fmaLoop = 10_000
)

// vectors is what the probes need to know of the instruction set.
type vectors struct {
	bytes     int // of a vector register
	registers int
}

// vectorsOf reads the register file off the host's feature string.
func vectorsOf(h llvmc.Host) vectors {
	switch {
	case runtime.GOARCH == "arm64":
		return vectors{16, 32}
	case h.Has("avx512f"):
		return vectors{64, 32}
	case h.Has("avx2"):
		return vectors{32, 16}
	}
	return vectors{16, 16}
}

// probe compiles a kernel called "probe" and returns the seconds of the fastest
// of repeats runs of each call with it, which all do the same work.
func probe(ctx context.Context, threads, repeats int, ir func(vectors) string, calls ...Call) (seconds float64, err error) {
	compiler, err := llvmc.Start(ctx, llvmc.Options{Workers: 1})
	if err != nil {
		return 0, err
	}
	defer compiler.Close()
	file, err := compiler.Compile(ctx, []byte(ir(vectorsOf(compiler.Host()))))
	if err != nil {
		return 0, err
	}
	code, err := object.Load(file)
	if err != nil {
		return 0, err
	}
	defer code.Close()
	entry, ok := code.Entry("probe")
	if !ok {
		return 0, errors.New("native: the probe has no entry")
	}
	pool, err := NewPool(Options{Workers: threads})
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	var steps []*Step
	for _, call := range calls {
		call.Fn, call.Name = entry, "probe"
		step, err := NewStep([][]Call{{call}})
		if err != nil {
			return 0, err
		}
		defer step.Free()
		steps = append(steps, step)
	}
	for i := range repeats + 1 {
		for _, step := range steps {
			begin := time.Now()
			if err := pool.Run(ctx, step); err != nil {
				return 0, err
			}
			if took := time.Since(begin).Seconds(); i > 0 && (seconds == 0 || took < seconds) { // the first round warms up
				seconds = took
			}
		}
	}
	return seconds, nil
}

// touch writes to every page, so that reads do not all meet the zero page.
func touch(memory []byte) {
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
}

// readPattern is one way to read a unit: streams separate pointers that
// advance together, and a prefetch that many bytes ahead (0: none).
type readPattern struct{ streams, prefetch int }

// readPatterns are tried in turn; which one is best differs by machine. GB/s
// on 2 virtual Zen 5 cores (2 MiB pages as here, and 4 KiB pages as in a
// mapped file), noise 5 %:
//
//	streams, prefetch    1,0    1,1024  1,4096  2,0    4,0    4,1024
//	1 thread,  2 MiB     39.8   39.9    37.1    41.0   41.6   42.9
//	2 threads, 2 MiB     45.3   50.7    48.3    48.6   50.6   52.6
//	1 thread,  4 KiB     39.8   39.9    38.3    40.3   40.8   42.1
//	2 threads, 4 KiB     38.9   46.0    51.1    50.8   51.0   52.2
//
// So a kernel should read several rows at once, or prefetch a page ahead:
// small pages end the hardware's own prefetching at each page.
var readPatterns = []readPattern{{1, 0}, {1, 4096}, {4, 0}, {4, 1024}}

// ir is the kernel: one integer accumulator per load in the loop body, eight
// loads in it, and the sum stored so that nothing is dead.
func (p readPattern) ir(v vectors) string {
	const loads = 8
	lanes := v.bytes / 8
	vector := fmt.Sprintf("<%d x i64>", lanes)
	var b strings.Builder
	fmt.Fprintf(&b, "declare i64 @llvm.vector.reduce.add.v%di64(%s)\ndeclare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n", lanes, vector)
	fmt.Fprintf(&b, `define void @probe(ptr %%args, i64 %%lo, i64 %%hi) nounwind {
entry:
  %%base = load ptr, ptr %%args
  %%pout = getelementptr ptr, ptr %%args, i64 1
  %%out = load ptr, ptr %%pout
  %%start = mul i64 %%lo, %d
  %%end = mul i64 %%hi, %d
  %%bytes = sub i64 %%end, %%start
  %%span = sdiv i64 %%bytes, %d
  br label %%loop
loop:
  %%i = phi i64 [ 0, %%entry ], [ %%next, %%loop ]
`, readUnit, readUnit, p.streams)
	for k := range loads {
		fmt.Fprintf(&b, "  %%a%d = phi %s [ zeroinitializer, %%entry ], [ %%b%d, %%loop ]\n", k, vector, k)
	}
	perStream := loads / p.streams
	for k := range loads {
		stream, offset := k/perStream, k%perStream*v.bytes
		fmt.Fprintf(&b, `  %%s%[1]d = mul i64 %%span, %[2]d
  %%o%[1]d = add i64 %%s%[1]d, %[3]d
  %%q%[1]d = add i64 %%o%[1]d, %%start
  %%r%[1]d = add i64 %%q%[1]d, %%i
  %%p%[1]d = getelementptr i8, ptr %%base, i64 %%r%[1]d
  %%v%[1]d = load %[4]s, ptr %%p%[1]d, align %[5]d
  %%b%[1]d = add %[4]s %%a%[1]d, %%v%[1]d
`, k, stream, offset, vector, v.bytes)
		if p.prefetch > 0 && offset%64 == 0 {
			fmt.Fprintf(&b, "  %%f%[1]d = getelementptr i8, ptr %%p%[1]d, i64 %[2]d\n  call void @llvm.prefetch.p0(ptr %%f%[1]d, i32 0, i32 3, i32 1)\n", k, p.prefetch)
		}
	}
	fmt.Fprintf(&b, "  %%next = add i64 %%i, %d\n  %%more = icmp slt i64 %%next, %%span\n  br i1 %%more, label %%loop, label %%done\ndone:\n", perStream*v.bytes)
	sum := "%b0"
	for k := 1; k < loads; k++ {
		fmt.Fprintf(&b, "  %%t%d = add %s %s, %%b%d\n", k, vector, sum, k)
		sum = fmt.Sprintf("%%t%d", k)
	}
	fmt.Fprintf(&b, `  %%total = call i64 @llvm.vector.reduce.add.v%di64(%s %s)
  %%slot = getelementptr i64, ptr %%out, i64 %%lo
  store i64 %%total, ptr %%slot
  ret void
}
`, lanes, vector, sum)
	return b.String()
}

// fmaShape is the register use of the FMA probe.
type fmaShape struct{ lanes, accumulators int }

// fmaShapeOf uses three quarters of the registers as accumulators: more than
// latency times issue width (4 cycles by 2 on Zen 5), and two are left for
// the operands.
func fmaShapeOf(v vectors) fmaShape { return fmaShape{v.bytes / 4, v.registers * 3 / 4} }

func (s fmaShape) flopsPerUnit() int64 { return 2 * int64(s.lanes) * int64(s.accumulators) * fmaLoop }

// ir is the kernel: acc = acc*x + y with x just below 1, so that the values
// converge and stay normal.
func (s fmaShape) ir() string {
	vector := fmt.Sprintf("<%d x float>", s.lanes)
	fma := fmt.Sprintf("@llvm.fma.v%df32", s.lanes)
	var b strings.Builder
	fmt.Fprintf(&b, "declare %[1]s %[2]s(%[1]s, %[1]s, %[1]s)\n", vector, fma)
	fmt.Fprintf(&b, `define void @probe(ptr %%args, i64 %%lo, i64 %%hi) nounwind {
entry:
  %%out = load ptr, ptr %%args
  %%units = sub i64 %%hi, %%lo
  %%n = mul i64 %%units, %d
  %%f = sitofp i64 %%units to float
  %%g = fdiv float 1.0, %%f
  %%h = fsub float 1.0, %%g
  %%x0 = insertelement %[2]s poison, float %%h, i32 0
  %%x = shufflevector %[2]s %%x0, %[2]s poison, <%[3]d x i32> zeroinitializer
  %%y0 = insertelement %[2]s poison, float %%g, i32 0
  %%y = shufflevector %[2]s %%y0, %[2]s poison, <%[3]d x i32> zeroinitializer
  br label %%loop
loop:
  %%i = phi i64 [ 0, %%entry ], [ %%next, %%loop ]
`, fmaLoop, vector, s.lanes)
	for k := range s.accumulators {
		fmt.Fprintf(&b, "  %%a%d = phi %s [ zeroinitializer, %%entry ], [ %%b%d, %%loop ]\n", k, vector, k)
	}
	for k := range s.accumulators {
		fmt.Fprintf(&b, "  %%b%d = call %s %s(%s %%a%d, %s %%x, %s %%y)\n", k, vector, fma, vector, k, vector, vector)
	}
	b.WriteString("  %next = add i64 %i, 1\n  %more = icmp slt i64 %next, %n\n  br i1 %more, label %loop, label %done\ndone:\n")
	for k := range s.accumulators {
		fmt.Fprintf(&b, "  %%p%[1]d = getelementptr %[2]s, ptr %%out, i64 %[1]d\n  store volatile %[2]s %%b%[1]d, ptr %%p%[1]d, align 4\n", k, vector)
	}
	b.WriteString("  ret void\n}\n")
	return b.String()
}
