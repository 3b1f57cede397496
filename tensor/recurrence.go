package tensor

// linear is the fold of linear recurrences (Blelloch 1990). What comes before a run of elements reaches its end
// by the product of their factors.
var linear = tupleFold{
	identity: []func(x *Tensor) *Tensor{number(1), number(0)},
	combine: func(first, then []*Tensor) []*Tensor {
		return []*Tensor{first[0].Mul(then[0]), first[1].Mul(then[0]).Add(then[1])}
	},
}

// recurrence is y with y[i] = t[i] + factor[i]*y[i-1] along axis k, whose extent is known, or with y[i+1] from the
// end. The derivative by t is the recurrence the other way, that by a factor is it times what it is a factor of.
func (t *Tensor) recurrence(factor *Tensor, k int, fromEnd bool) *Tensor {
	f, ones := linear, fold{identity: number(1)}
	moved, unmoved := ones.moved, ones.movedBack
	if f.fromEnd = fromEnd; fromEnd {
		moved, unmoved = unmoved, moved
	}
	y := f.running([]*Tensor{factor, t}, k, func(pair []*Tensor) *Tensor { return pair[1] })
	return y.derived([]*Tensor{t, factor}, func(y, g *Tensor, in []*Tensor) []*Tensor {
		later := g.recurrence(unmoved(in[1], k, 1), k, !fromEnd)
		return []*Tensor{later, later.Mul(moved(y, k, 1))}
	})
}

// runs is the fold of sums within runs of equal numbers: beside the last number, the sum of its run.
var runs = tupleFold{
	identity: []func(x *Tensor) *Tensor{number(-1), number(0)},
	combine: func(first, then []*Tensor) []*Tensor {
		return []*Tensor{then[0], first[0].Eq(then[0]).Where(first[1].Add(then[1]), then[1])}
	},
}

// sumsOfRuns are running sums along axis k, whose extent is known, that begin anew with each run of equal numbers
// (at least 0) of which a run is all, or those from the end. Their derivative is the same the other way.
func (t *Tensor) sumsOfRuns(numbers *Tensor, k int, fromEnd bool) *Tensor {
	f := runs
	f.fromEnd = fromEnd
	y := f.running([]*Tensor{numbers, t}, k, func(pair []*Tensor) *Tensor { return pair[1] })
	return y.derived([]*Tensor{t}, func(_, g *Tensor, _ []*Tensor) []*Tensor {
		return []*Tensor{g.sumsOfRuns(numbers, k, !fromEnd)}
	})
}
