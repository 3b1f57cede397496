package plot_test

import (
	"bytes"
	"fmt"

	"tgc/nn/plot"
)

func ExampleLines_SVG() {
	picture := plot.Lines{Title: "Loss", Lines: []plot.Line{
		{Name: "learned", X: []float64{0, 1, 2}, Y: []float64{2.3, 1.1, 0.6}},
		{Name: "unseen", X: []float64{0, 2}, Y: []float64{2.4, 0.9}},
	}}.SVG()
	fmt.Println(bytes.HasPrefix(picture, []byte("<svg")), bytes.Count(picture, []byte("unseen")))
	// Output: true 1
}
