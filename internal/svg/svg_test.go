package svg

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever a text holds, the picture is well-formed and has the elements that were drawn.
func TestWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		p := New(100, 50)
		p.Line(0, 0, 1, 1, "#000", 4, 2)
		p.Dot(1, 2, 3, "red", text)
		p.Box(1, 2, 3, 4, "red", text)
		p.Text(1, 2, Middle, text)
		p.Spans(1, 2, Start, Span{text, "blue"}, Span{Text: text})
		p.Curve([][2]float64{{1, 2}, {3, 4}}, text)
		count := make(map[string]int)
		d := xml.NewDecoder(strings.NewReader(string(p.Bytes())))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, p.Bytes())
			}
			if start, ok := token.(xml.StartElement); ok {
				count[start.Name.Local]++
			}
		}
		for element, want := range map[string]int{"svg": 1, "line": 1, "circle": 1, "title": 2, "rect": 2, "text": 2, "tspan": 1, "polyline": 1, "script": 0} {
			if count[element] != want {
				t.Fatalf("%d of %s, want %d", count[element], element, want)
			}
		}
	})
}
