package engine_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"tgc/internal/testkit"
	"tgc/ir"
	"tgc/runtime"
	"tgc/runtime/interp"
	"tgc/target"
)

// player drives one captured step and keeps the contents that its buffers
// should have.
type player struct {
	t     *testing.T
	c     *testkit.Case
	desc  *target.Desc
	bound *testkit.Bound
	state map[int64]*interp.KernelBuffer // contents before the next run
	id    map[string]int64
	rng   *rand.Rand
}

func newPlayer(t *testing.T, seed uint64, dev runtime.Device) *player {
	c, err := testkit.BuildFixed(testkit.DecodeStep, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{t: t, c: c, desc: dev.Target(), rng: rand.New(rand.NewPCG(seed, 5)), id: make(map[string]int64)}
	for _, info := range c.Graph.Buffers() {
		p.id[info.Name] = info.ID
		if err := c.Fill(info, p.rng, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	compiled, err := c.Compile(t.Context(), p.desc, checked())
	if err != nil {
		t.Fatal(err)
	}
	if p.bound, err = c.Bind(t.Context(), dev, compiled); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.bound.Free)
	p.state = c.Clone()
	if err := p.bound.Write(t.Context(), p.state); err != nil {
		t.Fatal(err)
	}
	return p
}

// set writes a buffer of the captured step and of the expected contents.
func (p *player) set(name string, values ...ir.Scalar) {
	b := *p.state[p.id[name]]
	b.Data = append(append([]ir.Scalar(nil), values...), b.Data[len(values):]...)
	p.state[p.id[name]] = &b
	if err := p.bound.Write(p.t.Context(), map[int64]*interp.KernelBuffer{p.id[name]: &b}); err != nil {
		p.t.Fatal(err)
	}
}

// step runs the captured step and a step compiled for this one run.
func (p *player) step(n int) {
	ctx := p.t.Context()
	position := int64(n % testkit.StepContext)
	p.set("pos", ir.IntScalar(position))
	p.set("token", ir.IntScalar(p.rng.Int64N(7)))
	if p.rng.IntN(4) == 0 { // the host assigns to a state buffer between steps
		p.set("kc", ir.FloatScalar(p.rng.NormFloat64()), ir.FloatScalar(1))
		p.state[p.id["kc"]].Data[0].F = ir.RoundFloat(ir.F32, p.state[p.id["kc"]].Data[0].F)
	}
	vars := map[string]int64{"length": min(position+1+p.rng.Int64N(3), testkit.StepContext)}
	if err := p.bound.Step.Run(ctx, vars); err != nil {
		p.t.Fatalf("step %d: %v", n, err)
	}
	got, err := p.bound.Read(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	want := p.fresh(vars)
	if err := testkit.SameBits(want, got); err != nil {
		p.t.Fatalf("step %d: compiled anew and captured: %v", n, err)
	}
	for id, b := range got {
		p.state[id] = b
	}
}

// fresh compiles the graph again and interprets it on the expected contents.
func (p *player) fresh(vars map[string]int64) map[int64]*interp.KernelBuffer {
	p.t.Helper()
	again, err := testkit.BuildFixed(testkit.DecodeStep, 1)
	if err != nil {
		p.t.Fatal(err)
	}
	again.Buffers, again.Vars = p.state, vars
	compiled, err := again.Compile(context.Background(), p.desc, checked())
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := again.Run(context.Background(), interp.New(interp.Options{}), compiled)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, s := range out[p.id["logits"]].Data {
		if math.IsNaN(s.F) {
			p.t.Fatal("logits are NaN: the test compares nothing")
		}
	}
	return out
}

// A captured step replayed with changing tokens, positions, lengths and host
// writes equals a step compiled anew every time, bit for bit, also with another
// captured step running in between.
func TestKitCapturedEqualsFresh(t *testing.T) {
	a, b := newPlayer(t, 1, interp.New(interp.Options{Shuffle: 1})), newPlayer(t, 2, interp.New(interp.Options{Shuffle: 2}))
	for n := range 25 {
		a.step(n)
		b.step(2 * n)
	}
}

// The same on the CPU: two captured steps share its workers, and every run
// equals the interpreter's.
func TestKitCapturedOnCPU(t *testing.T) {
	dev := openCPU(t)
	a, b := newPlayer(t, 3, dev), newPlayer(t, 4, dev)
	for n := range 25 {
		a.step(n)
		b.step(2 * n)
	}
}
