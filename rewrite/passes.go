package rewrite

import (
	"fmt"

	"tgc/ir"
)

// Pass is a named step from graph to graph that can be run alone on text.
type Pass struct {
	Name string
	Doc  string
	Run  func(a *ir.Arena, root *ir.UOp) (*ir.UOp, error)
}

// Passes lists what `tgc opt` can run: the verifiers, the canonicalisers, and
// every rule set alone.
func Passes() []Pass {
	passes := []Pass{
		{"verify", "check the contract of the form that the root is in", func(_ *ir.Arena, root *ir.UOp) (*ir.UOp, error) {
			return root, ir.Verify(root)
		}},
		{"verify-tensor", "check the contract of the tensor graph", func(_ *ir.Arena, root *ir.UOp) (*ir.UOp, error) {
			return root, ir.VerifyTensor(root)
		}},
		{"verify-kernel", "check the contract of kernels", func(_ *ir.Arena, root *ir.UOp) (*ir.UOp, error) {
			return root, ir.VerifyKernel(root)
		}},
		{"canonicalise", "rename ranges and slots by first use", func(a *ir.Arena, root *ir.UOp) (*ir.UOp, error) {
			out, _ := ir.Canonicalise(a, root)
			return out, nil
		}},
		{"simplify", "all rule sets together, to a fixpoint", func(a *ir.Arena, root *ir.UOp) (*ir.UOp, error) {
			out, _, err := Apply(a, root, Sets()...)
			return out, err
		}},
	}
	for _, set := range Sets() {
		passes = append(passes, Pass{set.Name, set.Doc, func(a *ir.Arena, root *ir.UOp) (*ir.UOp, error) {
			out, _, err := Apply(a, root, set)
			return out, err
		}})
	}
	return passes
}

// PassByName finds a pass of Passes.
func PassByName(name string) (Pass, error) {
	for _, p := range Passes() {
		if p.Name == name {
			return p, nil
		}
	}
	return Pass{}, fmt.Errorf("rewrite: there is no pass %q", name)
}
