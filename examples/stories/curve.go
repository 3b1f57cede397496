package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"

	"tgc/internal/atomicfile"
	"tgc/internal/lists"
	"tgc/internal/svg"
)

// point is the losses, in nats a token, after so many steps.
type point struct {
	step         int
	loss, unseen float64
}

// curve is the course of a run, kept as NAME.csv beside the drawing NAME.svg, so
// that a resumed run goes on with it.
type curve struct {
	name   string // empty: nothing is kept
	points []point
}

// readCurve reads what an earlier run left, up to a number of steps.
func readCurve(name string, steps int) (*curve, error) {
	c := &curve{name: name}
	if name == "" {
		return c, nil
	}
	text, err := os.ReadFile(name + ".csv")
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var p point
		if i == 0 {
			continue // the heading
		}
		if _, err := fmt.Sscanf(line, "%d,%g,%g", &p.step, &p.loss, &p.unseen); err != nil {
			return nil, fmt.Errorf("%s.csv: line %d: %w", name, i+1, err)
		}
		if p.step <= steps {
			c.points = append(c.points, p)
		}
	}
	return c, nil
}

// add keeps a point and writes both files.
func (c *curve) add(p point) error {
	if c.name == "" {
		return nil
	}
	c.points = append(c.points, p)
	var table strings.Builder
	table.WriteString("step,loss,unseen\n")
	for _, p := range c.points {
		fmt.Fprintf(&table, "%d,%.4f,%.4f\n", p.step, p.loss, p.unseen)
	}
	if err := atomicfile.Write(c.name+".csv", []byte(table.String())); err != nil {
		return err
	}
	return atomicfile.Write(c.name+".svg", c.draw())
}

// The drawing's size and margins in pixels.
const (
	drawWidth, drawHeight  = 720, 360
	marginLeft, marginRest = 48, 32
)

const trainingColour, unseenColour = "#06c", "#c30"

// draw is an SVG: steps to the right, losses upwards on a logarithmic scale.
func (c *curve) draw() []byte {
	low, high, last := math.Inf(1), math.Inf(-1), 1
	for _, p := range c.points {
		low, high, last = min(low, p.loss, p.unseen), max(high, p.loss, p.unseen), max(last, p.step)
	}
	low, high = low*0.9, high*1.1
	x := func(step int) float64 {
		return marginLeft + float64(step)/float64(last)*(drawWidth-marginLeft-marginRest)
	}
	y := func(loss float64) float64 {
		return drawHeight - marginRest - math.Log(loss/low)/math.Log(high/low)*(drawHeight-2*marginRest)
	}
	p := svg.New(drawWidth, drawHeight)
	p.Spans(marginLeft, 20, svg.Start, svg.Span{Text: "Loss in nats a token by step: "}, svg.Span{Text: "training", Colour: trainingColour},
		svg.Span{Text: ", "}, svg.Span{Text: "unseen stories", Colour: unseenColour})
	for _, tick := range []float64{0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7} {
		if tick > low && tick < high {
			p.Line(marginLeft, y(tick), drawWidth-marginRest, y(tick), "#ddd")
			p.Text(marginLeft-6, y(tick)+4, svg.End, fmt.Sprintf("%g", tick))
		}
	}
	for i := range 5 {
		step := last * i / 4
		p.Text(x(step), drawHeight-12, svg.Middle, fmt.Sprint(step))
	}
	line := func(colour string, of func(p point) float64) {
		p.Curve(lists.Map(c.points, func(at point) [2]float64 { return [2]float64{x(at.step), y(of(at))} }), colour)
	}
	line(trainingColour, func(p point) float64 { return p.loss })
	line(unseenColour, func(p point) float64 { return p.unseen })
	return p.Bytes()
}
