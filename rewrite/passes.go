package rewrite

import (
	"fmt"

	"tgc/ir"
	"tgc/pass"
)

// Pass is a step from graph to graph that passes of several stages are made of,
// and that can be run alone on text.
type Pass struct {
	pass.Info
	Run func(a *ir.Arena, root *ir.UOp) (*ir.UOp, error)
}

// AnyGraph is the form of a Pass from which and to which it leads: any that is
// made of UOps.
const AnyGraph pass.Form = "graph"

// Passes lists the verifiers, the canonicalisers, and every rule set alone.
func Passes() []Pass {
	passes := []Pass{
		{info("verify", AnyGraph, "check the contract of the form that the root is in"), func(_ *ir.Arena, root *ir.UOp) (*ir.UOp, error) {
			return root, ir.Verify(root)
		}},
		{info("verify-tensor", pass.Tensor, "check the contract of the tensor graph"), func(_ *ir.Arena, root *ir.UOp) (*ir.UOp, error) {
			return root, ir.VerifyTensor(root)
		}},
		{info("verify-kernel", pass.Kernel, "check the contract of kernels"), func(_ *ir.Arena, root *ir.UOp) (*ir.UOp, error) {
			return root, ir.VerifyKernel(root)
		}},
		{info("canonicalise", pass.Kernel, "rename ranges and slots by first use"), func(a *ir.Arena, root *ir.UOp) (*ir.UOp, error) {
			out, _ := ir.Canonicalise(a, root)
			return out, nil
		}},
		{info("simplify", AnyGraph, "all rule sets together, to a fixpoint"), func(a *ir.Arena, root *ir.UOp) (*ir.UOp, error) {
			out, _, err := Apply(a, root, Sets()...)
			return out, err
		}},
	}
	for _, set := range Sets() {
		passes = append(passes, Pass{info(set.Name, AnyGraph, set.Doc), func(a *ir.Arena, root *ir.UOp) (*ir.UOp, error) {
			out, _, err := Apply(a, root, set)
			return out, err
		}})
	}
	return passes
}

func info(name string, form pass.Form, doc string) pass.Info {
	return pass.Info{Name: name, From: form, To: form, Doc: doc}
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
