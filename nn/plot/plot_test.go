package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// element is an SVG element with its attributes and text.
type element struct {
	name, text string
	at         map[string]string
}

// elements parses a picture.
func elements(t *testing.T, picture []byte) (list []element) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(picture)))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, picture)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, at: make(map[string]string)}
			for _, a := range token.Attr {
				e.at[a.Name.Local] = a.Value
			}
			list = append(list, e)
		case xml.CharData:
			if len(list) > 0 {
				list[len(list)-1].text += strings.TrimSpace(string(token))
			}
		}
	}
}

func named(list []element, name string) []element {
	return slices.DeleteFunc(slices.Clone(list), func(e element) bool { return e.name != name })
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A curve goes through its points: of 1, 10 and 100 on a logarithmic scale the second stands
// in the middle, what is no number or not above 0 is left out, and ticks stand at their values.
func TestLines(t *testing.T) {
	list := elements(t, Lines{Title: "loss", Log: true, Lines: []Line{
		{Name: "a<b", X: []float64{0, 1, 2, 3, 4}, Y: []float64{100, 10, math.NaN(), 0, 1}},
		{Name: "short", X: []float64{0, 4}, Y: []float64{10}},
		{Name: "empty"},
	}}.SVG())
	curves := named(list, "polyline")
	if len(curves) != 3 || curves[0].at["points"] != "56.0,32.0 214.0,180.0 688.0,328.0 " || curves[1].at["points"] != "56.0,180.0 " {
		t.Errorf("curves: %v", curves)
	}
	spans := named(list, "tspan")
	if len(spans) != 3 || spans[0].text != "a<b," || spans[0].at["fill"] != "#06c" {
		t.Errorf("legend: %v", spans)
	}
	lines := named(list, "line")
	var texts []string
	for _, e := range named(list, "text") {
		texts = append(texts, e.text)
	}
	if len(lines) != 7 || !slices.Contains(texts, "50") || number(t, lines[3].at["y1"]) != 180 {
		t.Errorf("ticks %v at %v", texts, lines)
	}
}

// Pictures of nothing, of one point and of extremes are pictures.
func TestLinesOfLittle(t *testing.T) {
	for _, log := range []bool{false, true} {
		for _, values := range [][]float64{nil, {3}, {0}, {-1, -2}, {1e-300, 1e300}, {math.Inf(1), math.NaN()}, {5, 5.0000001}} {
			picture := Lines{Log: log, Lines: []Line{{X: make([]float64, len(values)), Y: values}}}.SVG()
			elements(t, picture)
			if text := string(picture); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || len(text) > 1e5 {
				t.Errorf("log %v, %v: %d bytes\n%.2000s", log, values, len(text), text)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		log       bool
		want      []float64
	}{
		{0, 100, false, []float64{0, 20, 40, 60, 80, 100}},
		{0.13, 0.42, false, []float64{0.15, 0.2, 0.25, 0.3, 0.35, 0.4}},
		{0.02, 2, true, []float64{0.02, 0.05, 0.1, 0.2, 0.5, 1, 2}},
		{1e-6, 1, true, []float64{1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1}},
		{1, 2, true, []float64{1, 1.2, 1.4, 1.6, 1.8, 2}},
	} {
		if got := (&scale{log: c.log, low: c.low, high: c.high}).ticks(6); !slices.Equal(got, c.want) {
			t.Errorf("%v..%v: %v, want %v", c.low, c.high, got, c.want)
		}
	}
}

// The longest bar fills its place, others are in proportion.
func TestBars(t *testing.T) {
	list := elements(t, Bars{Title: "step", Bars: []Bar{{Name: "k1", Value: 4, Text: "4 us", Says: "why"}, {Name: "k2", Value: 1}, {Name: "k3", Value: math.NaN()}}}.SVG())
	boxes := named(list, "rect")[1:]
	if len(boxes) != 3 || number(t, boxes[0].at["width"]) != 364 || number(t, boxes[1].at["width"]) != 91 || number(t, boxes[2].at["width"]) != 0 {
		t.Errorf("boxes: %v", boxes)
	}
	if titles := named(list, "title"); titles[0].text != "why" {
		t.Errorf("titles: %v", titles)
	}
}
