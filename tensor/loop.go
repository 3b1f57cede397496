package tensor

// Loop takes a step so many times: what it returns for a state is the next state, and the last
// one is the result. The steps of a loop stand in the graph one after the other, and each state
// is stored, so that steps which do the same with their state, wherever they are in the loop, are
// the same kernels: they are compiled once, however many there are. (A step that reads another
// part of a tensor each time is a kernel of its own each time; a state that is shifted or rolled,
// or that holds a number which the step increases, is not.) Derivatives go through all steps.
func Loop(times int, step func(state []*Tensor) []*Tensor, state ...*Tensor) []*Tensor {
	now := stored(state)
	for i := range times {
		if step == nil {
			return failed(state, "the step is nil")
		}
		next := step(now)
		if len(next) != len(now) {
			return failed(state, "step %d returns %d tensors; want %d, as many as it is given", i, len(next), len(now))
		}
		now = stored(next)
	}
	if times < 0 {
		return failed(state, "%d times; want at least 0", times)
	}
	return now
}

// failed is a bad tensor for each of a state.
func failed(state []*Tensor, format string, args ...any) []*Tensor {
	out := make([]*Tensor, len(state))
	for i, t := range state {
		if g := t.Graph(); g != nil {
			out[i] = g.fail("", format, args...)
		}
	}
	return out
}

func stored(state []*Tensor) []*Tensor {
	out := make([]*Tensor, len(state))
	for i, t := range state {
		out[i] = t.Contiguous()
	}
	return out
}
