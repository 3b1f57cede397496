package tensor

// Linear is t [.., K] times the transpose of w [N, K]: [.., N].
func (t *Tensor) Linear(w *Tensor) *Tensor {
	if !t.ok() || !w.ok() {
		return t.bad()
	}
	if t.Rank() < 1 || w.Rank() != 2 || t.Dim(-1) != w.Dim(-1) {
		return t.graph.fail("linear", "input %s, weight %s; want [.. K] and [N K]", t, w)
	}
	return t.Unsqueeze(-2).dot(w)
}

// MatMul is the matrix product [.. M K] times [.. K N] over the last two axes,
// the others broadcast. A vector is a row on the left and a column on the right,
// and its axis is dropped from the result (numpy.matmul).
func (t *Tensor) MatMul(u *Tensor) *Tensor {
	if !t.ok() || !u.ok() {
		return t.bad()
	}
	if t.Rank() < 1 || u.Rank() < 1 || t.Dim(-1) != u.Dim(max(u.Rank()-2, 0)-u.Rank()) {
		return t.graph.fail("matmul", "%s times %s; want [.. M K] and [.. K N]", t, u)
	}
	rows, columns := t, u
	if u.Rank() == 1 {
		return rows.dot(columns)
	}
	columns = columns.Transpose(-1, -2)
	if t.Rank() == 1 {
		return rows.Unsqueeze(0).dot(columns)
	}
	return rows.Unsqueeze(-2).dot(columns.Unsqueeze(-3))
}

// dot multiplies, broadcast, and sums over the last axis. Halves are multiplied
// and summed in f32, and the sum is rounded once.
func (t *Tensor) dot(u *Tensor) *Tensor {
	if t.ok() && u.ok() && t.DType() != u.DType() {
		return t.graph.fail("matmul", "dtypes differ: %s and %s", t, u)
	}
	return t.wide().Mul(u.wide()).Sum(-1).Cast(t.DType())
}
