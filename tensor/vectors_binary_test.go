package tensor_test

import "tgc/tensor"

// binaryOps are the rows of the group binary.
var binaryOps = map[string]opBuilder{
	"add":         binaryOp((*tensor.Tensor).Add),
	"sub":         binaryOp((*tensor.Tensor).Sub),
	"mul":         binaryOp((*tensor.Tensor).Mul),
	"div":         binaryOp((*tensor.Tensor).Div),
	"floordiv":    binaryOp((*tensor.Tensor).FloorDiv),
	"truncdiv":    binaryOp((*tensor.Tensor).TruncDiv),
	"mod":         binaryOp((*tensor.Tensor).FloorMod),
	"fmod":        binaryOp((*tensor.Tensor).TruncMod),
	"pow":         binaryOp((*tensor.Tensor).Pow),
	"atan2":       binaryOp((*tensor.Tensor).Atan2),
	"maximum":     binaryOp((*tensor.Tensor).Maximum),
	"minimum":     binaryOp((*tensor.Tensor).Minimum),
	"eq":          binaryOp((*tensor.Tensor).Eq),
	"ne":          binaryOp((*tensor.Tensor).Ne),
	"lt":          binaryOp((*tensor.Tensor).Lt),
	"le":          binaryOp((*tensor.Tensor).Le),
	"gt":          binaryOp((*tensor.Tensor).Gt),
	"ge":          binaryOp((*tensor.Tensor).Ge),
	"logical_and": binaryOp((*tensor.Tensor).LogicalAnd),
	"logical_or":  binaryOp((*tensor.Tensor).LogicalOr),
	"logical_xor": binaryOp((*tensor.Tensor).LogicalXor),
	"bitwise_and": binaryOp((*tensor.Tensor).And),
	"bitwise_or":  binaryOp((*tensor.Tensor).Or),
	"bitwise_xor": binaryOp((*tensor.Tensor).Xor),
	"shl":         binaryOp((*tensor.Tensor).Shl),
	"shr":         binaryOp((*tensor.Tensor).Shr),
	"where": func(_ *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].Where(in[1], in[2]))
	},
	"lerp": func(_ *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].Lerp(in[1], in[2]))
	},
}
