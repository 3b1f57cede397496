package cpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime"
	"tgc/runtime/interp"
)

func TestMain(m *testing.M) {
	MaybeChild()
	os.Exit(m.Run())
}

func newDevice(t testing.TB, options Options) *Device {
	t.Helper()
	options.NoCache = options.CacheDir == ""
	d, err := New(t.Context(), options)
	if errors.Is(err, ErrNoLLVM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// runOn runs a program on a device over copies of the buffers, by slot, and
// returns their contents afterwards.
func runOn(t testing.TB, d runtime.Device, exec runtime.Executable, buffers map[int][]byte, vars map[string]int64) map[int][]byte {
	t.Helper()
	ctx := t.Context()
	call := runtime.Call{Exec: exec, Slots: make(map[int]runtime.View)}
	for slot, b := range buffers {
		m, err := d.Alloc(ctx, int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Free()
		if err := m.Write(ctx, 0, b); err != nil {
			t.Fatal(err)
		}
		call.Slots[slot] = runtime.View{Memory: m}
	}
	r, err := d.Record(ctx, []runtime.Launch{{Calls: []runtime.Call{call}}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Free()
	if err := r.Run(ctx, vars); err != nil {
		t.Fatalf("%v\n%s", err, program.Print(exec.Program()))
	}
	out := make(map[int][]byte)
	for slot, b := range buffers {
		out[slot] = make([]byte, len(b))
		if err := call.Slots[slot].Memory.Read(ctx, 0, out[slot]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// generator builds random programs: a pool of values grows by random
// instructions, some of them in loops and branches; in the end every value is
// stored.
type generator struct {
	*program.Builder
	r      *rand.Rand
	pool   []*program.Value
	inputs map[ir.DType]*program.Value
	out    *program.Value
	stores []stored
	depth  int
}

type stored struct {
	value  *program.Value
	offset int64 // bytes in the output
}

const (
	inputBytes  = 512
	outputBytes = 1 << 16
	outputSlot  = 100
)

var genTypes = []ir.DType{ir.Bool, ir.I8, ir.I16, ir.I32, ir.I64, ir.U8, ir.U16, ir.U32, ir.U64, ir.F8E4M3, ir.F16, ir.BF16, ir.F32, ir.F64}
var genLanes = []int{1, 1, 2, 4, 8, 16, 16, 32, 3, 7}

func generate(seed uint64, steps int) (*program.Program, []stored) {
	g := &generator{
		Builder: program.NewBuilder(fmt.Sprintf("random_%d", seed)),
		r:       rand.New(rand.NewPCG(seed, 5)),
		inputs:  make(map[ir.DType]*program.Value),
	}
	for i, d := range genTypes {
		g.inputs[d] = g.Buffer(i, d, "", 64, inputBytes)
		g.Access(g.inputs[d], true, false)
	}
	g.out = g.Buffer(outputSlot, ir.U8, "out", 64, outputBytes)
	g.pool = append(g.pool, g.Var("n"))
	g.SetGrid(2)
	unit, body := g.BeginGrid()
	g.pool = append(g.pool, unit)
	for range 6 {
		g.load()
	}
	g.steps(steps)
	offset := int64(0)
	half := g.Mul(unit, g.Index(outputBytes/2))
	for _, v := range g.pool {
		size := int64(v.Type.Lanes * v.Type.Elem.Size())
		if offset+size > outputBytes/2 {
			break
		}
		p := g.PtrCast(g.PtrAdd(g.out, g.Add(half, g.Index(offset))), v.Type.Elem)
		g.Store(p, v, 16)
		g.stores = append(g.stores, stored{v, offset})
		offset += (size + 15) / 16 * 16
	}
	g.EndGrid(body)
	return g.Finish(), g.stores
}

func (g *generator) steps(n int) {
	for range n {
		g.step()
	}
}

func (g *generator) pick(list []*program.Value) *program.Value { return list[g.r.IntN(len(list))] }

// any picks a value that satisfies ok; nil when there is none.
func (g *generator) any(ok func(t program.Type) bool) *program.Value {
	var list []*program.Value
	for _, v := range g.pool {
		if ok(v.Type) {
			list = append(list, v)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return g.pick(list)
}

func (g *generator) like(t program.Type) *program.Value {
	if g.r.IntN(6) == 0 {
		return g.edge(t)
	}
	if v := g.any(func(o program.Type) bool { return o == t }); v != nil {
		return v
	}
	return g.edge(t)
}

func (g *generator) edge(t program.Type) *program.Value {
	if t.Elem.IsFloat() {
		values := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, math.Inf(1), math.Inf(-1), math.NaN(), 3.75, -1000}
		return g.Float(t, values[g.r.IntN(len(values))])
	}
	values := []int64{0, 1, -1, 2, 3, 4, 7, 8, 16, 31, 32, 63, 127, -128, math.MinInt64, math.MaxInt64, math.MinInt32}
	return g.Int(t, values[g.r.IntN(len(values))])
}

func (g *generator) add(v *program.Value) {
	if v != nil && !v.Type.Ptr {
		g.pool = append(g.pool, v)
	}
}

func (g *generator) load() {
	d := genTypes[g.r.IntN(len(genTypes))]
	lanes := genLanes[g.r.IntN(len(genLanes))]
	size := int64(d.Size())
	at := g.r.Int64N((inputBytes - int64(lanes)*size) / size)
	p := g.PtrAdd(g.inputs[d], g.Index(at))
	align := int(at * size & -(at * size))
	if at == 0 || align > 64 {
		align = 64
	}
	if g.r.IntN(4) == 0 {
		t := program.Vector(d, lanes)
		g.add(g.Guarded(g.like(program.Scalar(ir.Bool)), p, g.like(t), align))
		return
	}
	g.add(g.Load(p, lanes, align))
}

func (g *generator) step() {
	switch k := g.r.IntN(20); {
	case k < 2:
		g.load()
	case k < 11:
		g.alu()
	case k < 13:
		v := g.pick(g.pool)
		g.add(g.Cast(v, genTypes[g.r.IntN(len(genTypes))]))
	case k < 16:
		g.move()
	case k == 16:
		g.fold()
	case k == 17:
		g.gather()
	case k == 18 && g.depth < 2:
		g.loop()
	case k == 19 && g.depth < 2:
		g.branch()
	}
}

func (g *generator) alu() {
	op := ir.OpAdd + ir.Op(g.r.IntN(int(ir.OpRng-ir.OpAdd)+1))
	if op == ir.OpCast || op == ir.OpBitcast {
		return
	}
	t := g.pick(g.pool).Type
	if op == ir.OpRng {
		t.Elem = ir.U32
	}
	if op.Info().Type == ir.TypeFloat && !t.Elem.IsFloat() {
		t.Elem = []ir.DType{ir.F32, ir.F32, ir.F64, ir.F16, ir.BF16, ir.F8E4M3}[g.r.IntN(6)]
	}
	var args []*program.Value
	for i := range op.Info().Arity {
		if op == ir.OpWhere && i == 0 {
			args = append(args, g.like(program.Vector(ir.Bool, t.Lanes)))
			continue
		}
		args = append(args, g.like(t))
	}
	probe := program.NewBuilder("probe") // is the op legal on this type?
	var params []*program.Value
	for _, a := range args {
		params = append(params, probe.Zero(a.Type))
	}
	probe.Alu(op, params...)
	probe.GridLoop(func(*program.Value) {})
	if program.Verify(probe.Finish()) == nil {
		g.add(g.Alu(op, args...))
	}
}

func (g *generator) move() {
	v := g.pick(g.pool)
	n := v.Type.Lanes
	switch g.r.IntN(5) {
	case 0:
		if n == 1 {
			g.add(g.Broadcast(v, genLanes[g.r.IntN(len(genLanes))]))
		}
	case 1:
		g.add(g.Extract(v, g.r.IntN(n)))
	case 2:
		g.add(g.Insert(v, g.like(program.Scalar(v.Type.Elem)), g.r.IntN(n)))
	case 3:
		mask := make([]int, genLanes[g.r.IntN(len(genLanes))])
		for i := range mask {
			mask[i] = g.r.IntN(2 * n)
		}
		if g.r.IntN(2) == 0 {
			for i := range mask {
				mask[i] = (mask[0] + i) % (2 * n)
			}
		}
		g.add(g.Shuffle(v, g.like(v.Type), mask...))
	case 4:
		if n <= 16 {
			g.add(g.Concat(v, g.like(program.Vector(v.Type.Elem, genLanes[g.r.IntN(5)])), g.like(v.Type)))
		}
	}
}

func (g *generator) fold() {
	ops := []ir.Op{ir.OpAdd, ir.OpMul, ir.OpMax, ir.OpMin}
	if v := g.any(func(t program.Type) bool { return t.Elem != ir.Bool }); v != nil {
		g.add(g.FoldLanes(ops[g.r.IntN(4)], v))
	}
}

// gather reads at offsets masked into the input.
func (g *generator) gather() {
	d := genTypes[g.r.IntN(len(genTypes))]
	v := g.any(func(t program.Type) bool { return t.Elem == ir.I32 || t.Elem == ir.I64 })
	mask := int64(inputBytes/d.Size() - 1)
	offsets := g.Alu(ir.OpAnd, v, g.Int(v.Type, mask))
	g.add(g.Gather(g.inputs[d], offsets, d.Size()))
}

// scoped runs f; values made inside leave the pool, but those it returns.
func (g *generator) scoped(f func() []*program.Value) []*program.Value {
	n := len(g.pool)
	g.depth++
	out := f()
	g.depth--
	g.pool = g.pool[:n]
	return out
}

func (g *generator) loop() {
	inits := []*program.Value{g.pick(g.pool), g.pick(g.pool), g.like(g.pick(g.pool).Type)}
	count := g.Index(g.r.Int64N(4))
	if g.r.IntN(3) == 0 {
		count = g.pool[0] // n
	}
	results := g.For(g.Index(0), count, g.Index(1+g.r.Int64N(2)), inits, func(i *program.Value, carried []*program.Value) []*program.Value {
		return g.scoped(func() []*program.Value {
			g.pool = append(append(g.pool, i), carried...)
			g.steps(1 + g.r.IntN(5))
			var next []*program.Value
			for _, c := range carried {
				next = append(next, g.like(c.Type))
			}
			return next
		})
	})
	for _, v := range results {
		g.add(v)
	}
}

func (g *generator) branch() {
	cond := g.like(program.Scalar(ir.Bool))
	types := []program.Type{g.pick(g.pool).Type, g.pick(g.pool).Type}
	arm := func() []*program.Value {
		return g.scoped(func() []*program.Value {
			g.steps(1 + g.r.IntN(3))
			return []*program.Value{g.like(types[0]), g.like(types[1])}
		})
	}
	for _, v := range g.If(cond, arm, arm) {
		g.add(v)
	}
}

// inputs are random bits with some order of magnitude in the floats.
func randomInputs(r *rand.Rand) map[int][]byte {
	buffers := map[int][]byte{outputSlot: make([]byte, outputBytes)}
	for slot, d := range genTypes {
		b := make([]byte, inputBytes)
		for at := 0; at < inputBytes; at += d.Size() {
			word := r.Uint64()
			switch {
			case d == ir.Bool:
				word &= 1
			case d.IsFloat() && r.IntN(4) != 0:
				word = ir.FloatBits(d, ir.RoundFloat(d, r.NormFloat64()*8))
			case !d.IsFloat() && r.IntN(2) == 0:
				word &= 31
			}
			var w [8]byte
			binary.LittleEndian.PutUint64(w[:], word)
			copy(b[at:at+d.Size()], w[:])
		}
		buffers[slot] = b
	}
	return buffers
}

// sameLanes compares values of a dtype; NaN equals NaN.
func sameLanes(d ir.DType, a, b []byte) (lane int, same bool) {
	size := d.Size()
	for i := 0; i < len(a); i += size {
		var x, y [8]byte
		copy(x[:], a[i:i+size])
		copy(y[:], b[i:i+size])
		wx, wy := binary.LittleEndian.Uint64(x[:]), binary.LittleEndian.Uint64(y[:])
		if wx == wy {
			continue
		}
		if d.IsFloat() {
			fx, fy := ir.FloatFromBits(d, wx), ir.FloatFromBits(d, wy)
			if fx != fx && fy != fy {
				continue
			}
		}
		return i / size, false
	}
	return 0, true
}

// Random programs over all dtypes, ops and lane counts give the same bits on
// the CPU and in the interpreter, NaN payloads excepted.
func TestRandomProgramsEqualInterpreter(t *testing.T) {
	d := newDevice(t, Options{})
	reference := interp.New(interp.Options{Debug: true})
	n := 150
	if testing.Short() {
		n = 30
	}
	var programs []*program.Program
	var stores [][]stored
	for seed := range n {
		p, s := generate(uint64(seed), 40)
		if err := program.Verify(p); err != nil {
			t.Fatalf("%v\n%s", err, program.Print(p))
		}
		programs, stores = append(programs, p), append(stores, s)
	}
	compiled, err := d.Load(t.Context(), programs)
	if err != nil {
		t.Fatal(err)
	}
	interpreted, err := reference.Load(t.Context(), programs)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range programs {
		r := rand.New(rand.NewPCG(uint64(i), 6))
		buffers, vars := randomInputs(r), map[string]int64{"n": r.Int64N(5)}
		got := runOn(t, d, compiled[i], buffers, vars)[outputSlot]
		want := runOn(t, reference, interpreted[i], buffers, vars)[outputSlot]
		for _, s := range stores[i] {
			for unit := range int64(2) {
				at := unit*outputBytes/2 + s.offset
				end := at + int64(s.value.Type.Lanes*s.value.Type.Elem.Size())
				if lane, same := sameLanes(s.value.Type.Elem, got[at:end], want[at:end]); !same {
					t.Fatalf("program %d unit %d %s:%s lane %d: cpu %x, interpreter %x\n%s", i, unit, s.value, s.value.Type, lane,
						got[at:end], want[at:end], program.Print(p))
				}
			}
		}
	}
}
