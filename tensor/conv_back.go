package tensor

import (
	"slices"

	"tgc/ir"
	"tgc/target"
)

// back is the derivative of y = t.correlate(w, c) by t and w. That by t is the transposed
// convolution of the adjoint, so that no product is stored for each element of the kernel,
// as the derivatives of the windows' index expressions would have it.
func (c convolution) back(_, adjoint *Tensor, inputs []*Tensor) []*Tensor {
	t, w := inputs[0], inputs[1]
	return []*Tensor{c.backInput(t, w, adjoint), c.backKernel(t, w, adjoint)}
}

// backInput is the derivative by t [N, G*C, ..]. A GPU has no tiles for a few channels, an image's: there products for each
// element of the kernel are stored, and added where they meet.
func (c convolution) backInput(t, w, adjoint *Tensor) *Tensor {
	full := c
	full.padding, full.outputPadding = make([]int, c.rank), make([]int, c.rank)
	for i := range c.rank { // elements after the last window
		reach := (adjoint.Extent(2+i)-1)*c.stride[i] + c.dilation[i]*(w.Extent(3+i)-1) + 1
		full.outputPadding[i] = t.Extent(2+i) - reach
	}
	y := adjoint.transposed(w.Flatten(0, 1), full)
	if w.Extent(2) >= fewChannels || w.Extent(1) == 1 || slices.Max(c.dilation) > 1 || y.node == adjoint.node {
		return y
	}
	return y.OnTarget(func(desc *target.Desc) *Tensor {
		if desc.Kind != target.GPU {
			return nil
		}
		return c.backProducts(t, w, adjoint)
	})
}

// fewChannels are fewer than the columns of a matrix instruction.
const fewChannels = 8

// backProducts is backInput by a product for each element of the kernel, of which those that meet are added.
func (c convolution) backProducts(t, w, adjoint *Tensor) *Tensor {
	products := adjoint.besideKernel(w, c).Mul(w.besideWindows(c)).Sum(2).Flatten(1, 2) // [N, G*C, (.., K)..]
	for i := c.rank - 1; i >= 0; i-- {
		products = products.laidOver(2+2*i, c.window(w, i), t.Extent(2+i))
	}
	return products
}

// backKernel is the derivative by w [G, O, C, K..]: sums over windows and batch. Lanes of a CPU are outputs.
func (c convolution) backKernel(t, w, adjoint *Tensor) *Tensor {
	sum := []int{0}
	for i := range c.rank {
		sum = append(sum, 4+2*i)
	}
	return t.slices(w, c).Mul(adjoint.besideKernel(w, c)).Sum(sum...).OnTarget(func(desc *target.Desc) *Tensor {
		if desc.Kind == target.GPU || w.Extent(1) < desc.VectorBytes/ir.F32.Size() {
			return nil
		}
		return c.backOutputs(t, w, adjoint)
	})
}

// besideKernel is an adjoint [N, G*O, ..] with axes for what a kernel w [G, O, C, K..] has beside it, [N, G, O, 1, (.., 1)..].
func (t *Tensor) besideKernel(w *Tensor, c convolution) *Tensor {
	t = t.Unflatten(1, w.Extent(0), w.Extent(1)).Unsqueeze(3)
	for i := range c.rank {
		t = t.Unsqueeze(5 + 2*i)
	}
	return t
}

// backOutputs is backKernel with outputs side by side.
func (c convolution) backOutputs(t, w, adjoint *Tensor) *Tensor {
	last := []int{0}                // of adjoint: [N, .., G, O]
	windows := []int{0}             // of t's: [N, .., G, C, K..]
	elements := []int{1, 2}         // their G, C, K..
	back := []int{0, 2 + c.rank, 1} // of [G, C, K.., O]
	sum := []int{0}
	for i := range c.rank {
		last, windows, elements = append(last, 3+i), append(windows, 3+2*i), append(elements, 4+2*i)
		back, sum = append(back, 2+i), append(sum, 1+i)
	}
	x := t.slices(w, c).Squeeze(2).Permute(append(windows, elements...)...).Unsqueeze(-1) // of [N, G, C, (.., K)..]
	y := adjoint.Unflatten(1, w.Extent(0), w.Extent(1)).Permute(append(last, 1, 2)...).Contiguous()
	for range c.rank + 1 {
		y = y.Unsqueeze(-2)
	}
	return x.Mul(y).Sum(sum...).Contiguous().Permute(back...)
}
