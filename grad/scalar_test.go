package grad_test

import (
	"strings"
	"testing"

	"tgc/grad"
	"tgc/ir"
	"tgc/tensor"
)

// Derivatives of what is more than a number are an error, not those of its sum.
func TestGradientsWantANumber(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 2, 3)
	grad.Gradients(x.Square(), x)
	if err := g.Err(); err == nil || !strings.Contains(err.Error(), "grad: the loss is f32[2 3], want one number") {
		t.Errorf("got %v", err)
	}
}
