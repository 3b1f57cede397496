package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime"
	"tgc/runtime/interp"
)

// Points of every store at which the interpreter says what is right, evaluations with noise,
// and when there are enough of both: a point of attention over a long cache takes a while.
const (
	samplePoints = 8
	leastPoints  = 2
	noisyRuns    = 4
	sampleTime   = 500 * time.Millisecond
)

// What rounding may do: so many times as much as was seen of evaluations with noise, and so
// many units of the result's type.
const (
	noiseSlack  = 8
	resultUnits = 32
)

// errWrong is wrapped by what values say of a candidate.
var errWrong = errors.New("wrong values")

// trial is one run whose results are known.
type trial struct {
	set     int // of buffers: its contents are those of one seed
	vars    map[string]int64
	samples []interp.Sampled
	bounds  map[int]float64 // by slot: how far off a result may be
	asked   int             // points of stores that were sampled
	stored  int             // and those at which the kernel stores
	known   map[place]known // elements that were beyond it
	want    map[int][]byte  // of the heuristic's plan, by slot
}

// place is an element of a result.
type place struct {
	slot int
	at   int64
}

// known is what an element must be.
type known struct {
	value ir.Scalar
	bound float64
}

// judge knows what a kernel must compute.
type judge struct {
	calls    *Calls
	ast      *ir.UOp
	contents func(set, slot int, bytes int64) []byte
	trials   []*trial
	keepBits bool
}

// sample evaluates the kernel at some points, with and without noise, and counts those that it was asked for and
// those of which something is stored: a position that was loaded may lie outside of a cache.
func (j *judge) sample(ctx context.Context, t *trial) error {
	args := j.hostArguments(t.set)
	rng := rand.New(rand.NewPCG(uint64(t.set), 11))
	t.samples, t.bounds, t.asked, t.stored = nil, make(map[int]float64), 0, 0
	start := time.Now()
	for n := 0; n < samplePoints && (n < leastPoints || time.Since(start) < sampleTime); n++ {
		runs, err := j.samplesAt(ctx, [][]float64{samplePoint(n, rng)}, args, t.vars, uint64(n), noisyRuns)
		if err != nil {
			return err
		}
		t.asked += len(j.ast.Src)
		t.stored += len(runs[0])
		for i, s := range runs[0] {
			bound := boundOf(runs, i)
			if math.IsInf(bound, 1) {
				continue // anything would be right here, and should not be everywhere
			}
			t.bounds[s.Slot] = max(t.bounds[s.Slot], bound)
			t.samples = append(t.samples, s)
		}
	}
	return nil
}

// samplesAt evaluates points: without noise first, then with it some times, all at once.
func (j *judge) samplesAt(ctx context.Context, points [][]float64, args []*interp.KernelBuffer, vars map[string]int64, seed uint64, noisy int) ([][]interp.Sampled, error) {
	runs := make([][]interp.Sampled, 1+noisy)
	group, ctx := errgroup.WithContext(ctx)
	for i := range runs {
		group.Go(func() (err error) {
			options := interp.KernelOptions{Float64: true}
			if i > 0 {
				options.Noise = rand.New(rand.NewPCG(seed, uint64(i)))
			}
			runs[i], err = interp.SampleKernel(ctx, j.ast, args, vars, options, points)
			return err
		})
	}
	return runs, group.Wait()
}

// boundOf is how far off the i-th sample of evaluations may be, of which the first has no noise: infinitely, where
// noise decides whether it is a number at all, such as the root of what is nearly 0.
func boundOf(runs [][]interp.Sampled, i int) float64 {
	bound, exact := 0.0, number(runs[0][i].Value)
	for _, noisy := range runs[1:] {
		if i >= len(noisy) {
			continue
		}
		v := number(noisy[i].Value)
		switch off := noiseSlack * math.Abs(v-exact); {
		case v == exact, math.IsNaN(v) && math.IsNaN(exact):
		case math.IsNaN(off):
			return math.Inf(1)
		default:
			bound = max(bound, off)
		}
	}
	return bound
}

// number is a scalar of either kind.
func number(s ir.Scalar) float64 { return s.F + float64(s.I) }

// samplePoint is the first point, the last one, or any.
func samplePoint(n int, rng *rand.Rand) []float64 {
	point := make([]float64, 16)
	for i := range point {
		switch n {
		case 0:
		case 1:
			point[i] = 1
		default:
			point[i] = rng.Float64()
		}
	}
	return point
}

// hostArguments are the contents of a set as the interpreter takes them.
func (j *judge) hostArguments(set int) []*interp.KernelBuffer {
	args := make([]*interp.KernelBuffer, len(j.calls.slots))
	for i, s := range j.calls.slots {
		b := &j.calls.kernel.Schedule.Buffers[s.index]
		args[i] = &interp.KernelBuffer{DType: b.DType, Format: b.Format, Bytes: j.contents(set, i, s.host)}
	}
	return args
}

// poison is what outputs hold before a run: no number.
const poison = 0xff

// results runs a program on the buffers of a trial, as they were at first, and returns what it
// has written.
func (j *judge) results(ctx context.Context, t *trial, exec runtime.Executable) (map[int][]byte, error) {
	written := writtenSlots(exec.Program())
	for _, p := range written {
		s := j.calls.slots[p.Slot]
		data := j.contents(t.set, p.Slot, s.host)
		if !p.Read {
			data = slices.Repeat([]byte{poison}, int(s.host))
		}
		if err := s.layout.Write(ctx, j.calls.sets[t.set][p.Slot], data); err != nil {
			return nil, err
		}
	}
	if err := j.calls.run(ctx, exec, t.set, t.vars); err != nil {
		return nil, err
	}
	out := make(map[int][]byte)
	for _, p := range written {
		data, err := j.calls.slots[p.Slot].layout.Read(ctx, j.calls.sets[t.set][p.Slot], j.calls.slots[p.Slot].host)
		if err != nil {
			return nil, err
		}
		out[p.Slot] = data
	}
	bad, err := j.calls.intact(ctx, t.set)
	if err == nil && len(bad) > 0 {
		err = fmt.Errorf("%w: written beside buffer p%d", errWrong, bad[0])
	}
	return out, err
}

func writtenSlots(p *program.Program) (list []*program.Param) {
	for i := range p.Params {
		if p.Params[i].Kind == program.ParamBuffer && p.Params[i].Write {
			list = append(list, &p.Params[i])
		}
	}
	return list
}

// check runs a candidate in every trial, the first twice, and compares.
func (j *judge) check(ctx context.Context, exec runtime.Executable) error {
	for n, t := range j.trials {
		got, err := j.results(ctx, t, exec)
		if err != nil {
			return err
		}
		if n == 0 {
			again, err := j.results(ctx, t, exec)
			if err != nil {
				return err
			}
			for slot := range got {
				if !bytes.Equal(got[slot], again[slot]) {
					return fmt.Errorf("%w: the same input gave other bits of p%d", errWrong, slot)
				}
			}
		}
		if err := j.compare(ctx, t, got); err != nil {
			return err
		}
	}
	return nil
}

// compare holds results against the samples and against the heuristic's.
func (j *judge) compare(ctx context.Context, t *trial, got map[int][]byte) error {
	for _, s := range t.samples {
		dtype, data := j.dtype(s.Slot), got[s.Slot]
		if data == nil {
			return fmt.Errorf("%w: p%d is not written", errWrong, s.Slot)
		}
		v := numberOf(dtype)(data, s.At)
		if want := number(s.Value); !within(v, want, t.bounds[s.Slot], dtype) {
			return fmt.Errorf("%w: p%d[%d] is %v, the interpreter's %v", errWrong, s.Slot, s.At, v, want)
		}
	}
	for slot, want := range t.want {
		if bytes.Equal(got[slot], want) {
			continue
		}
		if j.keepBits {
			return fmt.Errorf("%w: other bits of p%d", errWrong, slot)
		}
		if err := j.near(ctx, t, slot, got[slot], want); err != nil {
			return err
		}
	}
	return nil
}

// mostBeyond is how many elements may be beyond the bounds of the sampled points and still be
// judged one by one.
const mostBeyond = 512

// near holds a result against the heuristic's. Bounds are those of some points: a point at which
// more cancels, such as a quotient by what is nearly 0, has others. So elements beyond the bounds
// are judged each by what the interpreter and its noise say of it.
func (j *judge) near(ctx context.Context, t *trial, slot int, got, want []byte) error {
	dtype := j.dtype(slot)
	if len(got) != len(want) {
		return fmt.Errorf("%w: %d bytes of p%d, want %d", errWrong, len(got), slot, len(want))
	}
	read := numberOf(dtype)
	beyond := apart(got, want, dtype, t.bounds[slot], mostBeyond)
	if len(beyond) > mostBeyond {
		at := beyond[0]
		return fmt.Errorf("%w: p%d[%d] is %v, the heuristic's %v; more than %d elements differ", errWrong, slot, at, read(got, at), read(want, at), mostBeyond)
	}
	if len(beyond) == 0 {
		return nil
	}
	if err := j.know(ctx, t, slot, beyond); err != nil {
		return err
	}
	for _, at := range beyond {
		v, w := read(got, at), read(want, at)
		k, ok := t.known[place{slot, at}]
		if !ok || !within(v, number(k.value), k.bound, dtype) {
			return fmt.Errorf("%w: p%d[%d] is %v, the heuristic's %v, the interpreter's %v", errWrong, slot, at, v, w, k.value)
		}
	}
	return nil
}

// knownRuns is how often an element is evaluated with noise: the side of a rounding to an integer
// on which it comes down is either one in half of the runs.
const knownRuns = 16

// know evaluates elements that were not before.
func (j *judge) know(ctx context.Context, t *trial, slot int, list []int64) error {
	wanted := make(map[int64]bool)
	for _, at := range list {
		if _, ok := t.known[place{slot, at}]; !ok {
			wanted[at] = true
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	args := j.hostArguments(t.set)
	found, err := interp.PointsOf(ctx, j.ast, args, t.vars, slot, wanted)
	if err != nil {
		return err
	}
	var points [][]float64
	for _, at := range slices.Sorted(maps.Keys(found)) {
		points = append(points, found[at])
	}
	runs, err := j.samplesAt(ctx, points, args, t.vars, uint64(slot), knownRuns)
	if err != nil || len(points) == 0 {
		return err
	}
	if t.known == nil {
		t.known = make(map[place]known)
	}
	for i, s := range runs[0] {
		if s.Slot != slot || !wanted[s.At] {
			continue
		}
		t.known[place{slot, s.At}] = known{s.Value, boundOf(runs, i)}
	}
	return nil
}

func (j *judge) dtype(slot int) ir.DType {
	return j.calls.kernel.Schedule.Buffers[j.calls.slots[slot].index].DType
}

func element(data []byte, dtype ir.DType, at int64) []byte {
	n := int64(dtype.Size())
	return data[at*n : (at+1)*n]
}

// within reports a value that rounding in another order may have made of another one.
func within(v, want, bound float64, dtype ir.DType) bool {
	if v == want || math.IsNaN(v) && math.IsNaN(want) || math.IsInf(bound, 1) {
		return true
	}
	if dtype.IsFloat() && !math.IsInf(want, 0) {
		bound += resultUnits * math.Ldexp(math.Abs(want), -max(dtype.MantissaBits(), 1)-1)
	}
	return math.Abs(v-want) <= bound
}
