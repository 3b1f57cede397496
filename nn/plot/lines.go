// Package plot draws what training leaves, curves and bars, as SVG without a script or a
// reference to elsewhere. Pictures depend on what is drawn alone, to the byte.
package plot

import (
	"fmt"
	"math"

	"tgc/internal/lists"
	"tgc/internal/svg"
)

// Line is a curve through points; those that are no numbers are left out.
type Line struct {
	Name string
	X, Y []float64
}

// Lines is a picture of curves over one axis.
type Lines struct {
	Title string
	Log   bool // upwards on a logarithmic scale, where no value is 0 or less
	Lines []Line
}

// The size of a picture of curves and its margins, in pixels.
const (
	width, height          = 720, 360
	marginLeft, marginRest = 56, 32
)

// colours of curves in their order.
var colours = []string{"#06c", "#c30", "#393", "#939", "#c90", "#099", "#666", "#f6a"}

// SVG draws the curves.
func (p Lines) SVG() []byte {
	x, y := newScale(false), newScale(p.Log)
	for _, line := range p.Lines {
		for i := range line.points() {
			x.add(line.X[i])
			y.add(line.Y[i])
		}
	}
	x.end()
	y.end()
	across := func(v float64) float64 { return marginLeft + x.place(v)*(width-marginLeft-marginRest) }
	up := func(v float64) float64 { return height - marginRest - y.place(v)*(height-2*marginRest) }

	picture := svg.New(width, height)
	legend := []svg.Span{{Text: p.Title}}
	for i, line := range p.Lines {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		legend = append(legend, svg.Span{Text: separator}, svg.Span{Text: line.Name, Colour: colours[i%len(colours)]})
	}
	picture.Spans(marginLeft, 20, svg.Start, legend...)
	for _, tick := range y.ticks(6) {
		picture.Line(marginLeft, up(tick), width-marginRest, up(tick), "#ddd")
		picture.Text(marginLeft-6, up(tick)+4, svg.End, fmt.Sprintf("%g", tick))
	}
	for _, tick := range x.ticks(6) {
		picture.Text(across(tick), height-12, svg.Middle, fmt.Sprintf("%g", tick))
	}
	for i, line := range p.Lines {
		var points [][2]float64
		for k := range line.points() {
			if y.shows(line.Y[k]) && x.shows(line.X[k]) {
				points = append(points, [2]float64{across(line.X[k]), up(line.Y[k])})
			}
		}
		picture.Curve(points, colours[i%len(colours)])
	}
	return picture.Bytes()
}

// points is how many the line has.
func (l Line) points() int { return min(len(l.X), len(l.Y)) }

// scale maps values to 0..1.
type scale struct {
	log       bool
	low, high float64
}

func newScale(log bool) *scale { return &scale{log: log, low: math.Inf(1), high: math.Inf(-1)} }

// shows reports a value that has a place.
func (s *scale) shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!s.log || v > 0)
}

func (s *scale) add(v float64) {
	if s.shows(v) {
		s.low, s.high = min(s.low, v), max(s.high, v)
	}
}

// end makes room where there is no value or only one.
func (s *scale) end() {
	switch {
	case s.low > s.high && s.log:
		s.low, s.high = 0.1, 1
	case s.low > s.high:
		s.low, s.high = 0, 1
	case s.low == s.high && s.log:
		s.low, s.high = s.low/2, s.high*2
	case s.low == s.high:
		s.low, s.high = s.low-1, s.high+1
	}
}

func (s *scale) place(v float64) float64 {
	if s.log {
		return (math.Log(v) - math.Log(s.low)) / (math.Log(s.high) - math.Log(s.low))
	}
	return (v - s.low) / (s.high - s.low)
}

// ticks are round values within the scale, about n of them.
func (s *scale) ticks(n int) []float64 {
	if s.log && s.high/s.low > 3 {
		return s.logTicks(n)
	}
	rough := (s.high - s.low) / float64(n)
	unit := math.Pow(10, math.Floor(math.Log10(rough)))
	step := unit * lists.First([]float64{1, 2, 5}, func(m float64) bool { return m*unit >= rough }, 10)
	var list []float64
	for i := math.Ceil(s.low/step - 1e-9); i*step <= s.high+step*1e-9; i++ {
		list = append(list, rounded(i*step))
	}
	return list
}

// logTicks are 1, 2 and 5 times powers of ten, or where that is too many some powers alone.
func (s *scale) logTicks(n int) []float64 {
	digits, every := []float64{1, 2, 5}, 1.
	if decades := math.Log10(s.high) - math.Log10(s.low); decades > float64(n)/2 {
		digits, every = digits[:1], math.Ceil(decades/float64(2*n))
	}
	var list []float64
	for power := math.Floor(math.Log10(s.low)); power <= math.Log10(s.high); power += every {
		for _, digit := range digits {
			if v := rounded(digit * math.Pow(10, power)); v >= s.low && v <= s.high {
				list = append(list, v)
			}
		}
	}
	return list
}

// rounded drops what arithmetic adds to a round number.
func rounded(v float64) float64 {
	var out float64
	fmt.Sscanf(fmt.Sprintf("%.10g", v), "%g", &out)
	return out
}
