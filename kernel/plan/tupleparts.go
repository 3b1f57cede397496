package plan

import "tgc/ir"

// TupleParts are the sources of a tuple REDUCE, one a component.
type TupleParts struct {
	N                          int
	Values, Identities, Lambda []*ir.UOp
}

// PartsOf takes a tuple REDUCE apart.
func PartsOf(u *ir.UOp) TupleParts {
	values := u.ReduceValues()
	return TupleParts{N: len(values), Values: values, Identities: u.ReduceIdentities(), Lambda: u.ReduceCombine()}
}
