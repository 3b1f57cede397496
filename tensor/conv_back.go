package tensor

// back is the derivative of y = t.correlate(w, c) by t and w. That by t is the transposed
// convolution of the adjoint, so that no product is stored for each element of the kernel,
// as the derivatives of the windows' index expressions would have it.
func (c convolution) back(_, adjoint *Tensor, inputs []*Tensor) []*Tensor {
	t, w := inputs[0], inputs[1]
	return []*Tensor{c.backInput(t, w, adjoint), c.backKernel(t, w, adjoint)}
}

// backInput is the derivative by t [N, G*C, ..].
func (c convolution) backInput(t, w, adjoint *Tensor) *Tensor {
	full := c
	full.padding, full.outputPadding = make([]int, c.rank), make([]int, c.rank)
	for i := range c.rank { // elements after the last window
		reach := (adjoint.Extent(2+i)-1)*c.stride[i] + c.dilation[i]*(w.Extent(3+i)-1) + 1
		full.outputPadding[i] = t.Extent(2+i) - reach
	}
	return adjoint.transposed(w.Flatten(0, 1), full)
}

// backKernel is the derivative by w [G, O, C, K..]: sums over windows and batch.
func (c convolution) backKernel(t, w, adjoint *Tensor) *Tensor {
	sum := []int{0}
	adjoint = adjoint.Unflatten(1, w.Extent(0), w.Extent(1)).Unsqueeze(3) // [N, G, O, 1, ..]
	for i := range c.rank {
		adjoint = adjoint.Unsqueeze(5 + 2*i)
		sum = append(sum, 4+2*i)
	}
	return t.slices(w, c).Mul(adjoint).Sum(sum...)
}
