package plot

import (
	"math"

	"tgc/internal/svg"
)

// Bar is a value with its name.
type Bar struct {
	Name  string
	Value float64
	Text  string // at its end
	Says  string // when one points at it
}

// Bars is a picture of values as bars, from the top.
type Bars struct {
	Title string
	Bars  []Bar
}

// The measures of a picture of bars, in pixels.
const (
	barHeight, barStep = 14, 20
	barLeft, barRest   = 260, 96
)

// SVG draws the bars.
func (p Bars) SVG() []byte {
	most := 0.0
	for _, b := range p.Bars {
		if v := b.length(); v > most {
			most = v
		}
	}
	picture := svg.New(width, 40+barStep*len(p.Bars))
	picture.Text(8, 20, svg.Start, p.Title)
	for i, b := range p.Bars {
		y, length := float64(32+barStep*i), 0.0
		if most > 0 {
			length = b.length() / most * (width - barLeft - barRest)
		}
		picture.Text(barLeft-6, y+11, svg.End, b.Name)
		picture.Box(barLeft, y, length, barHeight, colours[0], b.Says)
		picture.Text(barLeft+length+6, y+11, svg.Start, b.Text)
	}
	return picture.Bytes()
}

// length is the value, or 0 for what no bar can show.
func (b Bar) length() float64 {
	if math.IsNaN(b.Value) || math.IsInf(b.Value, 0) {
		return 0
	}
	return max(b.Value, 0)
}
