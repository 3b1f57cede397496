package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tgc/internal/lists"
	"tgc/internal/svg"
	"tgc/target"
)

// Floors are what a device could do at best.
type Floors struct {
	Rate float64 // GB/s from memory, by the target's numbers
	Peak float64 // GFLOP/s, likewise
}

// floorsOf are the numbers of a target: of a CPU they are of one core.
func floorsOf(desc *target.Desc, threads int) Floors {
	if desc.Cost.ByteDRAM == 0 || desc.Cost.Op == 0 {
		return Floors{}
	}
	const picoseconds, femtoseconds = 1e12, 1e15
	f := Floors{femtoseconds / float64(desc.Cost.ByteDRAM) / 1e9, femtoseconds / float64(desc.Cost.Op) / 1e9}
	if desc.Kind == target.CPU {
		workers := float64(max(threads, 1))
		f = Floors{workers * picoseconds / float64(desc.Cost.ByteDRAM) / 1e9, workers * picoseconds / float64(desc.Cost.Op) / 1e9}
	}
	return f
}

// The picture's size and margins in pixels.
const (
	roofWidth, roofHeight = 860, 520
	roofLeft, roofRight   = 70, 24
	roofTop, roofBottom   = 64, 56
)

// roofline maps numbers to the picture, on logarithmic scales.
type roofline struct {
	*svg.Picture
	least, most [2]float64 // operations a byte, GFLOP/s
}

func (f *roofline) x(v float64) float64 {
	return roofLeft + f.share(0, v)*(roofWidth-roofLeft-roofRight)
}

func (f *roofline) y(v float64) float64 {
	return roofHeight - roofBottom - f.share(1, v)*(roofHeight-roofTop-roofBottom)
}

// share is where a value stands between the ends of an axis, 0 to 1.
func (f *roofline) share(axis int, v float64) float64 {
	low, high := f.least[axis], f.most[axis]
	return math.Log(min(max(v, low), high)/low) / math.Log(high/low)
}

// kinds are the steps that a result has kernels of.
var kinds = []struct {
	name, colour string
	of           func(r *Result) []KernelResult
}{
	{"decode", "#06c", func(r *Result) []KernelResult { return r.Kernels }},
	{"prompt", "#c30", func(r *Result) []KernelResult { return r.PromptKernels }},
}

// Roofline draws the kernels of a result: operations a byte read against operations a second,
// with what memory and arithmetic allow at best. A kernel that computes nothing stands at the
// left end, as high as its bytes are near to that.
func Roofline(r *Result) []byte {
	f := &roofline{Picture: svg.New(roofWidth, roofHeight)}
	f.scale(r)
	f.frame(r)
	if r.ReadRate > 0 {
		f.roof(r.ReadRate, r.Floors.Peak, "#2a2", fmt.Sprintf("%.4g GB/s measured", r.ReadRate))
	}
	f.roof(r.Floors.Rate, r.Floors.Peak, "#888", fmt.Sprintf("target: %.4g GB/s, %.4g GFLOP/s", r.Floors.Rate, r.Floors.Peak), 5, 4)
	for _, kind := range kinds {
		for _, k := range kind.of(r) {
			f.kernel(&k, kind.name, kind.colour)
		}
	}
	return f.Bytes()
}

// point is where a kernel stands. Its rates have the same time, so that their quotient is
// operations a byte.
func (f *roofline) point(k *KernelResult) (intensity, rate float64) {
	if k.Rate <= 0 {
		return f.most[0], k.GFLOPS
	}
	if intensity = k.GFLOPS / k.Rate; intensity < f.least[0] {
		return f.least[0], k.Rate * f.least[0]
	}
	return intensity, k.GFLOPS
}

// scale finds the ends of the axes, powers of ten.
func (f *roofline) scale(r *Result) {
	f.least, f.most = [2]float64{0.1, 1}, [2]float64{100, 10}
	floor, ceil := func(v float64) float64 { return math.Pow(10, math.Floor(math.Log10(v))) }, func(v float64) float64 { return math.Pow(10, math.Ceil(math.Log10(v))) }
	if r.Floors.Rate > 0 && r.Floors.Peak > 0 {
		f.most = [2]float64{max(100, ceil(2*r.Floors.Peak/r.Floors.Rate)), ceil(1.01 * r.Floors.Peak)}
	}
	f.least[1] = f.most[1] / 10
	for _, kind := range kinds {
		for _, k := range kind.of(r) {
			if _, rate := f.point(&k); rate > 0 {
				f.least[1], f.most[1] = min(f.least[1], floor(rate)), max(f.most[1], ceil(1.01*rate))
			}
			if k.Rate > 0 && k.GFLOPS > 0 {
				f.most[0] = max(f.most[0], ceil(k.GFLOPS/k.Rate))
			}
		}
	}
}

// frame draws the axes and what they are.
func (f *roofline) frame(r *Result) {
	const grid = "#ddd"
	for v := f.least[0]; v <= f.most[0]*1.01; v = math.Round(1e6*v*10) / 1e6 {
		f.Line(f.x(v), roofTop, f.x(v), roofHeight-roofBottom, grid)
		f.Text(f.x(v), roofHeight-roofBottom+18, svg.Middle, tick(v))
	}
	for v := f.least[1]; v <= f.most[1]*1.01; v = math.Round(1e6*v*10) / 1e6 {
		f.Line(roofLeft, f.y(v), roofWidth-roofRight, f.y(v), grid)
		f.Text(roofLeft-8, f.y(v)+4, svg.End, tick(v))
	}
	f.Text(roofWidth/2, roofHeight-14, svg.Middle, "operations a byte read")
	title := []svg.Span{{Text: "GFLOP/s of each kernel: "}}
	for _, kind := range kinds {
		if len(kind.of(r)) > 0 {
			title = append(title, svg.Span{Text: kind.name + " ", Colour: kind.colour})
		}
	}
	title = append(title, svg.Span{Text: fmt.Sprintf("on %s, %s, %s", r.Device, r.Mode, r.Model)})
	f.Spans(roofLeft, 22, svg.Start, title...)
}

// tick is a power of ten.
func tick(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// roof draws what a bandwidth and a rate of operations allow.
func (f *roofline) roof(rate, peak float64, colour, label string, dashes ...int) {
	if rate <= 0 {
		return
	}
	ridge := f.most[0]
	if peak > 0 {
		ridge = min(ridge, peak/rate)
		f.Line(f.x(ridge), f.y(peak), f.x(f.most[0]), f.y(peak), colour, dashes...)
	}
	start := max(f.least[0], f.least[1]/rate)
	f.Line(f.x(start), f.y(rate*start), f.x(ridge), f.y(rate*ridge), colour, dashes...)
	at := 40.0
	if len(dashes) > 0 {
		at = 56
	}
	f.Spans(roofLeft, at, svg.Start, svg.Span{Text: label, Colour: colour})
}

// labelled is the share of a step from which a kernel's role stands beside its dot.
const labelled = 0.1

func (f *roofline) kernel(k *KernelResult, step, colour string) {
	intensity, rate := f.point(k)
	if rate <= 0 {
		return
	}
	x, y := f.x(intensity), f.y(rate)
	says := []string{k.Name, "reads " + k.Role, fmt.Sprintf("%d calls of %.4g us, %.1f %% of the %s step", k.Count, k.Time/float64(max(k.Count, 1)), 100*k.Share, step),
		fmt.Sprintf("%.4g GB/s, %.4g GFLOP/s, %.3g operations a byte", k.Rate, k.GFLOPS, intensity), "plan: " + strings.Join(k.Plan, "; "), k.Why}
	f.Dot(x, y, 3+14*math.Sqrt(min(max(k.Share, 0), 1)), colour, strings.Join(lists.Filter(says, func(s string) bool { return s != "" }), " | "))
	if k.Share >= labelled {
		f.Text(x+10, y-8, svg.Start, k.Role)
	}
}
