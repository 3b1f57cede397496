package tensor_test

import (
	"fmt"
	"maps"

	"tgc/tensor"
)

// opBuilder builds the results of an operation from its attributes and inputs.
type opBuilder func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor

// vectorOps dispatches on the names of the operator vectors; the rows stand in
// one file for each group.
var vectorOps = joinOps(unaryOps, binaryOps, reduceOps, movementOps, indexOps, matmulOps, nnOps, newerOps, searchOps)

func joinOps(tables ...map[string]opBuilder) map[string]opBuilder {
	all := make(map[string]opBuilder)
	for _, table := range tables {
		for name := range table {
			if all[name] != nil {
				panic(fmt.Sprintf("op %s has two rows", name))
			}
		}
		maps.Copy(all, table)
	}
	return all
}

// unary is a row for a method without attributes.
func unary(method func(*tensor.Tensor) *tensor.Tensor) opBuilder {
	return func(_ *attrs, in []*tensor.Tensor) []*tensor.Tensor { return one(method(in[0])) }
}

// binaryOp is a row for a method with one operand.
func binaryOp(method func(x, y *tensor.Tensor) *tensor.Tensor) opBuilder {
	return func(_ *attrs, in []*tensor.Tensor) []*tensor.Tensor { return one(method(in[0], in[1])) }
}

// attributed is a row for a method of one tensor with attributes.
func attributed(method func(a *attrs, x *tensor.Tensor) *tensor.Tensor) opBuilder {
	return func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor { return one(method(a, in[0])) }
}

func one(t *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{t} }
