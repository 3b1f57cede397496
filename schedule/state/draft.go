package state

import (
	"slices"

	"tgc/ir"
)

// Draft is a kernel that is not written yet: the values that it stores.
type Draft struct{ Values []*Value }

// Roots lists the expressions of a kernel: of each value its body, then where it
// is stored.
func (k *Draft) Roots() []*ir.UOp {
	var roots []*ir.UOp
	for _, v := range k.Values {
		roots = append(append(roots, v.Body), v.StoreIndex()...)
	}
	return roots
}

// SetRoots is the inverse of roots.
func (k *Draft) SetRoots(roots []*ir.UOp) {
	for _, v := range k.Values {
		n := len(v.StoreIndex())
		index := roots[1 : 1+n]
		if v.Body = roots[0]; !slices.Equal(index, v.StoreIndex()) {
			v.Index = slices.Clone(index)
		}
		roots = roots[1+n:]
	}
}
