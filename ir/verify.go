package ir

import "fmt"

// nodeError names a node by its text form and says what is wrong with it.
func nodeError(u *UOp, format string, args ...any) error {
	return fmt.Errorf("ir: verify: %s: %s", NodeText(u), fmt.Sprintf(format, args...))
}

// verifyNodes applies VerifyNode and the table's form column to every node.
func verifyNodes(order []*UOp, form Form, formName string) error {
	for _, u := range order {
		if err := VerifyNode(u); err != nil {
			return fmt.Errorf("ir: verify: %s: %w", NodeText(u), err)
		}
		if u.Op.Info().Forms&form == 0 {
			return nodeError(u, "is not legal in a %s", formName)
		}
	}
	return nil
}

// Verify checks a graph as the form that its root is in: a kernel if it is a
// PAR or a SINK of STOREs, else a tensor graph.
func Verify(root *UOp) error {
	if root.Op == OpPar || root.Op == OpSink && len(root.Src) > 0 && root.Src[0].Op == OpStore {
		return VerifyKernel(root)
	}
	return VerifyTensor(root)
}
