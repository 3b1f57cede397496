// Package svg draws simple pictures: lines, dots and text, as SVG without a script or a
// reference to elsewhere. Coordinates are pixels from the upper left.
package svg

import (
	"fmt"
	"html"
	"strings"
)

// Picture is a drawing under way.
type Picture struct{ b strings.Builder }

// New begins a picture on white.
func New(width, height int) *Picture {
	p := &Picture{}
	p.printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", width, height)
	p.printf("<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n")
	return p
}

func (p *Picture) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// escape makes text of any bytes safe between tags and quotes.
func escape(text string) string {
	printable := func(r rune) rune {
		if r < ' ' || r == 0xfffe || r == 0xffff { // not allowed in XML at all
			return ' '
		}
		return r
	}
	return html.EscapeString(strings.Map(printable, strings.ToValidUTF8(text, "?")))
}

// Line draws a straight line; dashes are lengths of its pieces, none: it is whole.
func (p *Picture) Line(x1, y1, x2, y2 float64, colour string, dashes ...int) {
	p.printf("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"", x1, y1, x2, y2, escape(colour))
	if len(dashes) > 0 {
		p.printf(" stroke-dasharray=\"%s\"", strings.Trim(fmt.Sprint(dashes), "[]"))
	}
	p.printf("/>\n")
}

// Curve draws lines from point to point.
func (p *Picture) Curve(points [][2]float64, colour string) {
	p.printf("<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"", escape(colour))
	for _, at := range points {
		p.printf("%.1f,%.1f ", at[0], at[1])
	}
	p.printf("\"/>\n")
}

// Dot draws a disc that says something when one points at it.
func (p *Picture) Dot(x, y, radius float64, colour, says string) {
	p.printf("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\" fill-opacity=\"0.75\"><title>%s</title></circle>\n", x, y, radius, escape(colour), escape(says))
}

// Box draws a filled rectangle that says something when one points at it.
func (p *Picture) Box(x, y, width, height float64, colour, says string) {
	p.printf("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"><title>%s</title></rect>\n", x, y, width, height, escape(colour), escape(says))
}

// Anchor says which part of a text stands at its place.
type Anchor string

// The anchors.
const (
	Start  Anchor = "start"
	Middle Anchor = "middle"
	End    Anchor = "end"
)

// Text writes a line of text.
func (p *Picture) Text(x, y float64, anchor Anchor, text string) {
	p.Spans(x, y, anchor, Span{Text: text})
}

// Span is a part of a line of text; without a colour it is black.
type Span struct{ Text, Colour string }

// Spans writes a line of text of several parts.
func (p *Picture) Spans(x, y float64, anchor Anchor, parts ...Span) {
	p.printf("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor)
	for _, s := range parts {
		if s.Colour == "" {
			p.printf("%s", escape(s.Text))
			continue
		}
		p.printf("<tspan fill=\"%s\">%s</tspan>", escape(s.Colour), escape(s.Text))
	}
	p.printf("</text>\n")
}

// Bytes ends the picture.
func (p *Picture) Bytes() []byte { return []byte(p.b.String() + "</svg>\n") }
