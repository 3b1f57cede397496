package plan

import (
	"slices"

	"tgc/ir"
)

// tupleParts are the sources of a tuple REDUCE.
type TupleParts struct {
	N                          int
	Values, Identities, Lambda []*ir.UOp
	over                       *ir.UOp
}

// partsOf takes a tuple REDUCE apart.
func PartsOf(u *ir.UOp) TupleParts {
	n := u.Arg.(ir.ReduceArg).N
	return TupleParts{N: n, Values: u.Src[:n], over: u.Src[n], Identities: u.Src[n+1 : 2*n+1], Lambda: u.Src[2*n+1:]}
}

// lambdaUses lists the components whose accumulator or element a lambda body
// reads.
func lambdaUses(body *ir.UOp, n int) []int {
	var out []int
	for _, u := range ir.Toposort(body) {
		if u.Op == ir.OpArg {
			c := int(u.Arg.(ir.IntArg)) % n
			if !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	slices.Sort(out)
	return out
}

// componentsOf is the transitive set of components that component c needs.
func ComponentsOf(u *ir.UOp, c int) []int {
	p := PartsOf(u)
	set := []int{c}
	for k := 0; k < len(set); k++ {
		for _, o := range lambdaUses(p.Lambda[set[k]], p.N) {
			if !slices.Contains(set, o) {
				set = append(set, o)
			}
		}
	}
	slices.Sort(set)
	return set
}
