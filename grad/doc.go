// Package grad builds derivatives: Of takes results of a tensor graph back to
// its inputs (reverse mode) by adding nodes to the same graph.
//
//	loss := x.Linear(w).Sub(y).Square().Sum()
//	grads := grad.Of([]*tensor.Tensor{loss}, []*tensor.Tensor{nil}, []*tensor.Tensor{w})
//	g.Output("dw", grads[0])
//
// Every primitive op has one rule in a table: what of the adjoint of its result
// reaches each source. A rule is written with ordinary tensor ops, so that
// derivatives of derivatives work, and a gradient is scheduled, fused and
// compiled as everything else is. Nothing here knows a layer.
//
// Start at of.go; the rules stand in rules_*.go, one file a kind of op.
package grad
