package programtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// generator builds random programs: a pool of values grows by random
// instructions, some of them in loops and branches; in the end every value is
// stored.
type generator struct {
	*program.Builder
	r      *rand.Rand
	pool   []*program.Value
	inputs map[ir.DType]*program.Value
	out    *program.Value
	stores []Stored
	depth  int
}

// Stored says where a value of a random program is in the output of unit 0;
// that of unit 1 is OutputBytes/2 further.
type Stored struct {
	Value  *program.Value
	Offset int64 // bytes
}

// Sizes of the buffers, and the slot of the output; inputs have slots 0, 1, ..
const (
	InputBytes  = 512
	OutputBytes = 1 << 16
	OutputSlot  = 100
)

var genLanes = []int{1, 1, 2, 4, 8, 16, 16, 32, 3, 7}

// Generate builds a random program of two work units and one VAR "n", which
// reads one buffer per dtype of Types and stores what it computed.
func Generate(seed uint64, steps int) (*program.Program, []Stored) {
	g := &generator{
		Builder: program.NewBuilder(fmt.Sprintf("random_%d", seed)),
		r:       rand.New(rand.NewPCG(seed, 5)),
		inputs:  make(map[ir.DType]*program.Value),
	}
	for i, d := range Types {
		g.inputs[d] = g.Buffer(i, d, "", 64, InputBytes)
		g.Access(g.inputs[d], true, false)
	}
	g.out = g.Buffer(OutputSlot, ir.U8, "out", 64, OutputBytes)
	g.pool = append(g.pool, g.Var("n"))
	g.SetGrid(2)
	unit, body := g.BeginGrid()
	g.pool = append(g.pool, unit)
	for range 6 {
		g.load()
	}
	g.steps(steps)
	offset := int64(0)
	half := g.Mul(unit, g.Index(OutputBytes/2))
	for _, v := range g.pool {
		size := int64(v.Type.Lanes * v.Type.Elem.Size())
		if offset+size > OutputBytes/2 {
			break
		}
		p := g.PtrCast(g.PtrAdd(g.out, g.Add(half, g.Index(offset))), v.Type.Elem)
		g.Store(p, v, 16)
		g.stores = append(g.stores, Stored{v, offset})
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
	list := lists.Filter(g.pool, func(v *program.Value) bool { return ok(v.Type) })
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
	d := Types[g.r.IntN(len(Types))]
	lanes := genLanes[g.r.IntN(len(genLanes))]
	size := int64(d.Size())
	at := g.r.Int64N((InputBytes - int64(lanes)*size) / size)
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
	switch k := g.r.IntN(22); {
	case k < 2:
		g.load()
	case k < 11:
		g.alu()
	case k < 13:
		v := g.pick(g.pool)
		g.add(g.Cast(v, Types[g.r.IntN(len(Types))]))
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
	case k == 20:
		g.dot()
	case k == 21:
		g.stack()
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
		t.Elem = []ir.DType{ir.F32, ir.F32, ir.F64, ir.F16, ir.BF16, ir.F8E4M3, ir.F8E5M2}[g.r.IntN(7)]
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
	params := lists.Map(args, func(a *program.Value) *program.Value { return probe.Zero(a.Type) })
	probe.Alu(op, params...)
	probe.GridLoop(func(*program.Value) {})
	if program.Verify(probe.Finish()) == nil {
		g.add(g.Alu(op, args...))
	}
}

func (g *generator) move() {
	v := g.pick(g.pool)
	n := v.Type.Lanes
	switch g.r.IntN(4) {
	case 0:
		if n == 1 {
			g.add(g.Broadcast(v, genLanes[g.r.IntN(len(genLanes))]))
		}
	case 1:
		g.add(g.Extract(v, g.r.IntN(n)))
	case 2:
		mask := lists.Make(genLanes[g.r.IntN(len(genLanes))], func(int) int { return g.r.IntN(2 * n) })
		if g.r.IntN(2) == 0 {
			for i := range mask {
				mask[i] = (mask[0] + i) % (2 * n)
			}
		}
		g.add(g.Shuffle(v, g.like(v.Type), mask...))
	case 3:
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
	d := Types[g.r.IntN(len(Types))]
	v := g.any(func(t program.Type) bool { return t.Elem == ir.I32 || t.Elem == ir.I64 })
	mask := int64(InputBytes/d.Size() - 1)
	if g.r.IntN(3) == 0 {
		table := g.Table([]ir.DType{ir.I8, ir.U8, ir.F32}[g.r.IntN(3)], "\x81\x98\xad\xbf\xcf\xdd\xea\xf6\x01\x0d\x19&5EYq")
		g.add(g.Gather(table, g.Alu(ir.OpAnd, v, g.Int(v.Type, int64(16/table.Type.Elem.Size()-1))), table.Type.Elem.Size()))
		return
	}
	offsets := g.Alu(ir.OpAnd, v, g.Int(v.Type, mask))
	g.add(g.Gather(g.inputs[d], offsets, d.Size()))
}

func (g *generator) dot() {
	n := []int{1, 4, 8, 16, 32}[g.r.IntN(5)]
	acc, x, y := g.like(program.Vector(ir.I32, n)), program.Vector(ir.U8, 4*n), program.Vector(ir.I8, 4*n)
	g.add(g.Dot4(acc, g.bytes(x), g.bytes(y)))
}

// bytes is a loaded vector of bytes.
func (g *generator) bytes(t program.Type) *program.Value {
	return g.Load(g.PtrAdd(g.inputs[t.Elem], g.Index(g.r.Int64N(InputBytes-int64(t.Lanes)))), t.Lanes, 1)
}

// stack fills a stack array, scatters over a part of it and reads it back.
func (g *generator) stack() {
	v := g.pick(g.pool)
	t := program.Vector(v.Type.Elem, 16)
	array := g.Alloca(t.Elem, program.LocalSpace, 16, 64)
	g.Store(array, g.like(t), 64)
	offsets := g.any(func(o program.Type) bool { return (o.Elem == ir.I32 || o.Elem == ir.I64) && o.Lanes == v.Type.Lanes })
	if offsets != nil {
		g.Scatter(array, g.Alu(ir.OpAnd, offsets, g.Int(offsets.Type, 15)), v, t.Elem.Size())
	}
	g.add(g.Load(array, 16, 64))
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
			return lists.Map(carried, func(c *program.Value) *program.Value { return g.like(c.Type) })
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

// Inputs are buffers by slot for a random program: random bits with some order of magnitude in the floats.
func Inputs(r *rand.Rand) map[int][]byte {
	buffers := map[int][]byte{OutputSlot: make([]byte, OutputBytes)}
	for slot, d := range Types {
		b := make([]byte, InputBytes)
		for at := 0; at < InputBytes; at += d.Size() {
			word := r.Uint64()
			switch {
			case d == ir.Bool && r.IntN(4) != 0: // any byte but 0 is true
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

// SameLanes compares values of a dtype; NaN equals NaN. lane is the first that
// differs.
func SameLanes(d ir.DType, a, b []byte) (lane int, same bool) {
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
