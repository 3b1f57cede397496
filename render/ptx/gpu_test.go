package ptx

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"tgc/internal/ptxemu"
	_ "tgc/internal/rarecollection"
	"tgc/ir"
	"tgc/ir/program"
)

// Hand-written programs of threads, against expectations in Go.

func floats(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func floatAt(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}

func filled(n int, f func(i int) float32) []byte {
	values := make([]float32, n)
	for i := range values {
		values[i] = f(i)
	}
	return floats(values...)
}

// unread is memory whose contents are never looked at before they are written.
func unread(n int) []byte { return make([]byte, n) }

// reduceWarp folds v over the lanes of a warp; every lane gets the sum.
func reduceWarp(b *program.Builder, v *program.Value) *program.Value {
	for _, mask := range []int64{16, 8, 4, 2, 1} {
		v = b.Add(v, b.ShuffleLane(v, b.Int(program.Scalar(ir.I32), mask)))
	}
	return v
}

func i32(v int64) func(b *program.Builder) *program.Value {
	return func(b *program.Builder) *program.Value { return b.Int(program.Scalar(ir.I32), v) }
}

// warpSums stores the sum of each warp's 32 values.
func warpSums(threads, blocks int64) *program.Program {
	b := program.NewBuilder("warp_sums")
	x := b.Buffer(0, ir.F32, "x", 4, 4*threads*blocks)
	y := b.Buffer(1, ir.F32, "y", 4, threads*blocks/8)
	b.Access(x, true, false)
	b.Access(y, false, true)
	b.SetGrid(blocks)
	b.SetBlock(threads)
	b.GridLoop(func(unit *program.Value) {
		tid := b.ThreadIndex(0)
		at := b.Add(b.Mul(unit, b.Index(threads)), b.Cast(tid, ir.I64))
		sum := reduceWarp(b, b.Load(b.PtrAdd(x, at), 1, 4))
		first := b.Eq(b.Alu(ir.OpFloorMod, tid, i32(32)(b)), i32(0)(b))
		b.If(first, func() []*program.Value {
			b.Store(b.PtrAdd(y, b.FloorDiv(at, b.Index(32))), sum, 4)
			return nil
		}, nil)
	})
	return b.Finish()
}

func TestWarpReduce(t *testing.T) {
	const threads, blocks = 64, 3
	for _, arch := range architectures {
		buffers := map[int][]byte{0: filled(threads*blocks, func(i int) float32 { return float32(i * i % 97) }), 1: unread(threads * blocks / 8)}
		emulate(t, warpSums(threads, blocks), arch, Options{}, buffers, nil, 7)
		for w := range threads * blocks / 32 {
			want := float32(0)
			for i := 32 * w; i < 32*w+32; i++ {
				want += float32(i * i % 97)
			}
			if got := floatAt(buffers[1], w); got != want {
				t.Errorf("%s: warp %d: %g, want %g", arch, w, got, want)
			}
		}
	}
}

// blockSums stores the sum of each block's values: warps by shuffles, their sums
// through shared memory, the last step in the first warp alone. Without the
// barrier it is a race.
func blockSums(threads, blocks int64, barrier bool) *program.Program {
	b := program.NewBuilder("block_sums")
	x := b.Buffer(0, ir.F32, "x", 4, 4*threads*blocks)
	y := b.Buffer(1, ir.F32, "y", 4, 4*blocks)
	n := b.Var("n")
	b.SetGrid(blocks)
	b.SetBlock(threads)
	room := b.Alloca(ir.F32, program.SharedSpace, threads/32, 16)
	b.GridLoop(func(unit *program.Value) {
		tid := b.ThreadIndex(0)
		thread := b.Cast(tid, ir.I64)
		at := b.Add(b.Mul(unit, b.Index(threads)), thread)
		zero := b.Float(program.Scalar(ir.F32), 0)
		v := b.Guarded(b.Lt(at, n), b.PtrAdd(x, at), zero, 4)
		sum := reduceWarp(b, v)
		lane := b.Alu(ir.OpFloorMod, tid, i32(32)(b))
		b.If(b.Eq(lane, i32(0)(b)), func() []*program.Value {
			b.Store(b.PtrAdd(room, b.FloorDiv(thread, b.Index(32))), sum, 4)
			return nil
		}, nil)
		if barrier {
			b.Barrier()
		}
		b.If(b.Lt(tid, i32(32)(b)), func() []*program.Value {
			warps := b.Lt(thread, b.Index(threads/32))
			part := b.Guarded(warps, b.PtrAdd(room, thread), zero, 4)
			total := reduceWarp(b, part)
			b.If(b.Eq(tid, i32(0)(b)), func() []*program.Value {
				b.Store(b.PtrAdd(y, unit), total, 4)
				return nil
			}, nil)
			return nil
		}, nil)
	})
	return b.Finish()
}

func TestBlockReduce(t *testing.T) {
	const threads, blocks, n = 256, 3, 700
	for seed, arch := range architectures {
		// Behind n the buffer ends: a guarded load must not touch it.
		buffers := map[int][]byte{0: filled(n, func(i int) float32 { return float32(i % 31) }), 1: unread(4 * blocks)}
		for _, opt := range []Options{{}, {Persistent: true, MinBlocks: 2}} {
			emulate(t, blockSums(threads, blocks, true), arch, opt, buffers, map[string]int64{"n": n}, uint64(seed))
			for u := range blocks {
				want := float32(0)
				for i := threads * u; i < min(threads*(u+1), n); i++ {
					want += float32(i % 31)
				}
				if got := floatAt(buffers[1], u); got != want {
					t.Errorf("%s: block %d: %g, want %g", arch, u, got, want)
				}
			}
		}
	}
}

func TestDroppedBarrierIsARace(t *testing.T) {
	p := blockSums(256, 1, false)
	k, err := Render(p, describe(t, "sm_80"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(10) { // whatever the order
		buffers := map[int][]byte{0: filled(256, func(int) float32 { return 1 }), 1: unread(4)}
		err := run(p, k, buffers, map[string]int64{"n": 256}, seed)
		if err == nil || !strings.Contains(err.Error(), "race") && !strings.Contains(err.Error(), "not defined") {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// dots are dot products of bytes of all signs, per thread.
func TestDot4(t *testing.T) {
	const threads = 32
	for _, signs := range [][2]ir.DType{{ir.U8, ir.U8}, {ir.U8, ir.I8}, {ir.I8, ir.U8}, {ir.I8, ir.I8}} {
		b := program.NewBuilder("dots")
		x := b.Buffer(0, signs[0], "x", 16, 16*threads)
		y := b.Buffer(1, signs[1], "y", 16, 16*threads)
		z := b.Buffer(2, ir.I32, "z", 16, 16*threads)
		b.SetGrid(1)
		b.SetBlock(threads)
		b.GridLoop(func(*program.Value) {
			thread := b.Cast(b.ThreadIndex(0), ir.I64)
			at := b.Mul(thread, b.Index(16))
			acc := b.IntLanes(ir.I32, 0, 1, 2, 3)
			v := b.Dot4(acc, b.Load(b.PtrAdd(x, at), 16, 16), b.Load(b.PtrAdd(y, at), 16, 16))
			b.Store(b.PtrAdd(z, b.Mul(thread, b.Index(4))), v, 16)
		})
		bytes := func(step int) []byte {
			out := make([]byte, 16*threads)
			for i := range out {
				out[i] = byte(i*step + i/7)
			}
			return out
		}
		buffers := map[int][]byte{0: bytes(37), 1: bytes(101), 2: unread(16 * threads)}
		emulate(t, b.Finish(), "sm_75", Options{}, buffers, nil, 1)
		value := func(d ir.DType, v byte) int32 {
			if d == ir.I8 {
				return int32(int8(v))
			}
			return int32(v)
		}
		for i := range 4 * threads {
			want := int32(i % 4)
			for k := 4 * i; k < 4*i+4; k++ {
				want += value(signs[0], buffers[0][k]) * value(signs[1], buffers[1][k])
			}
			if got := int32(binary.LittleEndian.Uint32(buffers[2][4*i:])); got != want {
				t.Fatalf("%v: lane %d: %d, want %d", signs, i, got, want)
			}
		}
	}
}

// product is one mma of matrices in global memory, fragments loaded by the
// layout that program.MmaShape documents.
func product(s *program.MmaShape) *program.Program {
	b := program.NewBuilder("product")
	size := int64(s.A.Size())
	a := b.Buffer(0, s.A, "a", 16, int64(s.M*s.K)*size)
	x := b.Buffer(1, s.B, "b", 16, int64(s.N*s.K)*size) // column by column
	c := b.Buffer(2, s.Acc, "c", 16, int64(s.M*s.N*s.Acc.Size()))
	b.SetGrid(1)
	b.SetBlock(32)
	b.GridLoop(func(*program.Value) {
		lane := b.Cast(b.ThreadIndex(0), ir.I64)
		g, t := b.FloorDiv(lane, b.Index(4)), b.FloorMod(lane, b.Index(4))
		per := int64(s.Word())
		load := func(p *program.Value, words, rows int) *program.Value {
			var parts []*program.Value
			for i := range words {
				row := b.Add(g, b.Index(int64(8*(i%rows))))
				k := b.Add(b.Mul(t, b.Index(per)), b.Index(int64(i/rows)*4*per))
				at := b.Add(b.Mul(row, b.Index(int64(s.K))), k)
				parts = append(parts, b.Load(b.PtrAdd(p, at), int(per), int(max(4, size))))
			}
			return b.Concat(parts...)
		}
		av := load(a, s.M*s.K/32/int(per), s.M/8)
		xv := load(x, s.N*s.K/32/int(per), 1)
		out := b.Mma(b.Zero(program.Vector(s.Acc, s.M*s.N/32)), av, xv)
		for i := range s.M / 8 {
			at := b.Add(b.Mul(b.Add(g, b.Index(int64(8*i))), b.Index(int64(s.N))), b.Mul(t, b.Index(2)))
			b.Store(b.PtrAdd(c, at), b.Slice(out, 2*i, 2), 2*s.Acc.Size())
		}
	})
	return b.Finish()
}

func TestMma(t *testing.T) {
	for i := range program.MmaShapes {
		s := &program.MmaShapes[i]
		t.Run(s.Name, func(t *testing.T) {
			element := func(d ir.DType, i int) (bits uint64, v float64) {
				n := int64(i*7%13) - 5
				if !d.IsSigned() {
					n += 5
				}
				if d.IsFloat() {
					return ir.FloatBits(d, float64(n)), float64(n)
				}
				return uint64(n), float64(n)
			}
			fill := func(d ir.DType, n int) []byte {
				var out []byte
				for i := range n {
					bits, _ := element(d, i)
					for k := range d.Size() {
						out = append(out, byte(bits>>(8*k)))
					}
				}
				return out
			}
			p := product(s)
			buffers := map[int][]byte{0: fill(s.A, s.M*s.K), 1: fill(s.B, s.N*s.K), 2: unread(s.Acc.Size() * s.M * s.N)}
			emulate(t, p, "sm_90", Options{}, buffers, nil, 3)
			for m := range s.M {
				for n := range s.N {
					want := 0.0
					for k := range s.K {
						_, x := element(s.A, m*s.K+k)
						_, y := element(s.B, n*s.K+k)
						want += x * y
					}
					at := m*s.N + n
					var got float64
					switch s.Acc {
					case ir.I32:
						got = float64(int32(binary.LittleEndian.Uint32(buffers[2][4*at:])))
					case ir.F64:
						got = math.Float64frombits(binary.LittleEndian.Uint64(buffers[2][8*at:]))
					default:
						got = float64(floatAt(buffers[2], at))
					}
					if got != want {
						t.Fatalf("row %d, column %d: %g, want %g", m, n, got, want)
					}
				}
			}
			if s.SM > 75 {
				if _, err := Render(p, describe(t, "sm_75"), Options{}); err == nil || !strings.Contains(err.Error(), "has no mma") {
					t.Error(err)
				}
			}
			if tools := assembler(t); true {
				k, err := Render(p, describe(t, "sm_90"), Options{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tools.Ptxas(context.Background(), k.Text, "sm_90"); err != nil {
					t.Errorf("%s", located(err, k.Text))
				}
			}
		})
	}
}

// tickets: every thread draws a number and stores its own at that place.
func TestAtomic(t *testing.T) {
	const threads, blocks = 48, 4
	b := program.NewBuilder("tickets")
	counter := b.Buffer(0, ir.U32, "counter", 4, 4)
	y := b.Buffer(1, ir.I32, "y", 4, 4*threads*blocks)
	b.SetGrid(blocks)
	b.SetBlock(threads)
	b.GridLoop(func(unit *program.Value) {
		ticket := b.Atomic(ir.OpAdd, counter, b.Int(program.Scalar(ir.U32), 1))
		own := b.Add(b.Mul(unit, b.Index(threads)), b.Cast(b.ThreadIndex(0), ir.I64))
		b.Store(b.PtrAdd(y, b.Cast(ticket, ir.I64)), b.Cast(own, ir.I32), 4)
	})
	buffers := map[int][]byte{0: make([]byte, 4), 1: unread(4 * threads * blocks)}
	emulate(t, b.Finish(), "sm_75", Options{}, buffers, nil, 5)
	seen := make(map[uint32]bool)
	for i := range threads * blocks {
		seen[binary.LittleEndian.Uint32(buffers[1][4*i:])] = true
	}
	if len(seen) != threads*blocks {
		t.Errorf("%d different threads, want %d", len(seen), threads*blocks)
	}
}

// scaled writes y = 2*x after waiting for the previous grid, weights (w) ahead
// of it.
func scaled(wait bool) *program.Program {
	b := program.NewBuilder("scaled")
	w := b.Buffer(0, ir.F32, "w", 4, 4*32)
	x := b.Buffer(1, ir.F32, "x", 4, 4*32)
	y := b.Buffer(2, ir.F32, "y", 4, 4*32)
	b.Access(w, true, false)
	b.Access(x, true, false)
	b.Access(y, false, true)
	b.SetGrid(1)
	b.SetBlock(32)
	b.GridLoop(func(*program.Value) {
		b.Emit(program.Instr{Op: program.LaunchNext})
		thread := b.Cast(b.ThreadIndex(0), ir.I64)
		weight := b.LoadCached(b.PtrAdd(w, thread), 1, 4, program.CacheStream)
		if wait {
			b.Emit(program.Instr{Op: program.WaitGrid})
		}
		b.Store(b.PtrAdd(y, thread), b.Mul(weight, b.Load(b.PtrAdd(x, thread), 1, 4)), 4)
	})
	return b.Finish()
}

// A grid whose part ahead of the wait runs before the previous grid gives the
// right result; without the wait it reads what is not written yet.
func TestGridDependency(t *testing.T) {
	for _, wait := range []bool{true, false} {
		k, err := Render(scaled(wait), describe(t, "sm_90"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if k.WaitsGrid != wait {
			t.Errorf("WaitsGrid is %t", k.WaitsGrid)
		}
		module, err := ptxemu.Parse(k.Text)
		if err != nil {
			t.Fatal(err)
		}
		entry, err := module.Kernel(k.Entry)
		if err != nil {
			t.Fatal(err)
		}
		memory := ptxemu.NewMemory()
		var at [4]uint64
		for i := range at {
			if at[i], err = memory.Alloc(128, 4); err != nil {
				t.Fatal(err)
			}
		}
		for _, i := range []int{0, 1} {
			if err := memory.Write(at[i], filled(32, func(i int) float32 { return float32(i) })); err != nil {
				t.Fatal(err)
			}
		}
		start := func(x, y uint64) *ptxemu.Grid {
			launch := ptxemu.Launch{Grid: [3]int{1, 1, 1}, Block: k.Block, Memory: memory}
			for _, v := range []uint64{at[0], x, y} {
				launch.Params = append(launch.Params, binary.LittleEndian.AppendUint64(nil, v))
			}
			g, err := entry.Start(launch)
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		first, second := start(at[1], at[2]), start(at[2], at[3])
		err = second.Early(context.Background(), 1)
		if !wait {
			if err == nil || !strings.Contains(err.Error(), "not defined") {
				t.Errorf("without a wait: %v", err)
			}
			continue
		}
		for _, g := range []*ptxemu.Grid{first, second} {
			if err == nil {
				err = g.Run(context.Background())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		out := make([]byte, 128)
		if err := memory.Read(at[3], out); err != nil {
			t.Fatal(err)
		}
		for i := range 32 {
			if got, want := floatAt(out, i), float32(i*i*i); got != want {
				t.Errorf("element %d: %g, want %g", i, got, want)
			}
		}
	}
}

// Barriers and shuffles in divergent flow are refused.
func TestDivergentFlow(t *testing.T) {
	build := func(threads int64, f func(b *program.Builder, tid *program.Value)) *program.Program {
		b := program.NewBuilder("divergent")
		b.SetGrid(1)
		b.SetBlock(threads)
		b.GridLoop(func(*program.Value) { f(b, b.ThreadIndex(0)) })
		return b.Finish()
	}
	when := func(limit int64, f func(b *program.Builder)) func(b *program.Builder, tid *program.Value) {
		return func(b *program.Builder, tid *program.Value) {
			b.If(b.Lt(tid, i32(limit)(b)), func() []*program.Value { f(b); return nil }, nil)
		}
	}
	barrier := func(b *program.Builder) { b.Barrier() }
	shuffle := func(b *program.Builder) { b.ShuffleLane(i32(1)(b), i32(1)(b)) }
	for _, c := range []struct {
		p    *program.Program
		want string // empty: legal
	}{
		{build(64, when(64, barrier)), "all threads of a warp"},
		{build(64, when(7, barrier)), "one thread"},
		{build(64, when(32, shuffle)), ""},
		{build(64, when(16, shuffle)), "one thread"},
		{build(48, func(b *program.Builder, _ *program.Value) { shuffle(b) }), "a multiple of 32"},
		{build(64, func(b *program.Builder, tid *program.Value) {
			b.For(b.Index(0), b.Cast(tid, ir.I64), b.Index(1), nil, func(*program.Value, []*program.Value) []*program.Value {
				b.Barrier()
				return nil
			})
		}), "one thread"},
		{build(2048, func(*program.Builder, *program.Value) {}), "1..1024"},
	} {
		_, err := Render(c.p, describe(t, "sm_80"), Options{})
		switch {
		case c.want == "" && err != nil:
			t.Error(err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// What Render refuses, and what it says of a launch.
func TestRenderErrorsAndShared(t *testing.T) {
	b := program.NewBuilder("large")
	y := b.Buffer(0, ir.F32, "y", 4, 4)
	room := b.Alloca(ir.F32, program.SharedSpace, 20<<10, 128)
	b.SetGrid(1)
	b.GridLoop(func(*program.Value) {
		last := b.PtrAdd(room, b.Index(20<<10-1))
		b.Store(last, b.Float(program.Scalar(ir.F32), 3), 4)
		b.Store(y, b.Load(last, 1, 4), 4)
	})
	p := b.Finish()
	k, err := Render(p, describe(t, "sm_90"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !k.Dynamic || k.Shared != 80<<10 {
		t.Errorf("%d bytes, dynamic %t", k.Shared, k.Dynamic)
	}
	buffers := map[int][]byte{0: unread(4)}
	if err := run(p, k, buffers, nil, 0); err != nil || floatAt(buffers[0], 0) != 3 {
		t.Error(err, buffers[0])
	}
	if _, err := Render(p, describe(t, "sm_75"), Options{}); err == nil || !strings.Contains(err.Error(), "shared memory") {
		t.Error(err)
	}
	if _, err := Render(p, nil, Options{}); err == nil {
		t.Error("a program without a target renders")
	}
}
