package tensor_test

import "tgc/tensor"

// binaryOps are the rows of the group binary.
var binaryOps = map[string]opBuilder{
	"add": binaryOp((*tensor.Tensor).Add),
	"sub": binaryOp((*tensor.Tensor).Sub),
	"mul": binaryOp((*tensor.Tensor).Mul),
}
