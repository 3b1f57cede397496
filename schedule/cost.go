package schedule

import "tgc/ir"

// operationCost is the cost of one scalar operation, in plain operations.
// Movement of data, casts between integers and index arithmetic are free.
func operationCost(op ir.Op) int64 {
	switch op {
	case ir.OpExp2, ir.OpLog2, ir.OpSin:
		return 8
	case ir.OpSqrt, ir.OpRsqrt, ir.OpFDiv, ir.OpRecip:
		return 4
	}
	if op.IsElementwise() {
		return 1
	}
	return 0
}
