package ir

import "slices"

// VerifyKernel checks a kernel (pipeline form 2). Its contract:
//
//   - the root is a SINK of STOREs, or a PAR of such SINKs;
//   - every node keeps VerifyNode and is legal in kernels; no VALUE is left;
//   - a STORE's ranges are distinct and cover the free ranges of its value and
//     indices; the extent of a loop uses outer loops only;
//   - no range is closed by a REDUCE or STAGE inside a REDUCE, STAGE or STORE
//     that closes it too (inlining gives fresh ranges);
//   - a tuple REDUCE's lambda is elementwise ops of CONST and ARG 0..2N-1, ARG
//     i having the dtype of component i mod N; ARG occurs nowhere else; ranges
//     that only a later component uses have constant extents;
//   - PARAMs of one slot are one node; a packed one is never stored to;
//   - stores go to different slots or provably disjoint regions; what a store
//     writes is read only at the same indices by that store itself, in a
//     disjoint region, or in the false arm of a WHERE that tests for the
//     written index. Evaluating stores one after another cannot see a breach.
func VerifyKernel(root *UOp) error {
	order := Toposort(root)
	if err := verifyNodes(order, FormKernel, "kernel"); err != nil {
		return err
	}
	a := NewArena()
	root = a.Import(root)
	stores, err := storesOf(root)
	if err != nil {
		return err
	}
	v := &kernelVerifier{arena: a, free: NewFreeRanges(), closed: make(map[*UOp][]*UOp), bounds: NewBounds(), linear: NewLinearizer(a)}
	for _, u := range Toposort(root) {
		if err := v.node(u); err != nil {
			return err
		}
	}
	if err := v.argsOutside(root); err != nil {
		return err
	}
	for _, s := range stores {
		if err := v.store(s); err != nil {
			return err
		}
	}
	return v.hazards(root, stores)
}

// storesOf lists the STOREs of a SINK or of all SINKs of a PAR.
func storesOf(root *UOp) ([]*UOp, error) {
	sinks := []*UOp{root}
	if root.Op == OpPar {
		sinks = root.Src
	}
	var stores []*UOp
	for _, sink := range sinks {
		if sink.Op != OpSink {
			return nil, nodeError(root, "the root of a kernel is a sink or a par of sinks")
		}
		if i := slices.IndexFunc(sink.Src, func(s *UOp) bool { return s.Op != OpStore }); i >= 0 {
			return nil, nodeError(sink, "source %d is %s, want a store", i, NodeText(sink.Src[i]))
		}
		stores = append(stores, sink.Src...)
	}
	return stores, nil
}

type kernelVerifier struct {
	arena  *Arena
	free   *FreeRanges
	closed map[*UOp][]*UOp // ranges closed at or below a node
	params []*UOp
	bounds *Bounds
	linear *Linearizer
}

// node checks what can be said without the store around it.
func (v *kernelVerifier) node(u *UOp) error {
	var closed []*UOp
	for _, s := range u.Src {
		closed = UnionRanges(closed, v.closed[s])
	}
	var closes []*UOp
	switch u.Op {
	case OpValue:
		return nodeError(u, "no kernel reads values of a schedule")
	case OpParam:
		for _, p := range v.params {
			if p != u && p.Arg.(ParamArg).Slot == u.Arg.(ParamArg).Slot {
				return nodeError(u, "slot is also declared as %s", NodeText(p))
			}
		}
		v.params = append(v.params, u)
	case OpReduce:
		closes = []*UOp{u.ReduceRange()}
		if u.Arg.(ReduceArg).Op == OpInvalid {
			if err := v.tuple(u); err != nil {
				return err
			}
		}
	case OpStage:
		closes = slices.Clone(u.Src[1:])
		SortNodes(closes)
	case OpStore:
		closes = slices.Clone(u.Ranges())
		SortNodes(closes)
	}
	for i, r := range closes {
		if i > 0 && closes[i-1] == r {
			return nodeError(u, "closes %s twice", NodeText(r))
		}
		if slices.Contains(closed, r) {
			return nodeError(u, "closes %s, which is closed again inside", NodeText(r))
		}
	}
	v.closed[u] = UnionRanges(closed, closes)
	return nil
}

// tuple checks a tuple reduce's lambda and private ranges.
func (v *kernelVerifier) tuple(u *UOp) error {
	values := u.ReduceValues()
	n := len(values)
	for _, x := range Toposort(u.Src[2*n+1:]...) {
		switch {
		case x.Op == OpArg:
			i := int(x.Arg.(IntArg))
			if i >= 2*n {
				return nodeError(u, "its lambda uses arg %d, want 0..%d", i, 2*n-1)
			}
			if want := values[i%n].DType; x.DType != want {
				return nodeError(u, "arg %d is %s, want %s", i, x.DType, want)
			}
		case x.Op != OpConst && !x.Op.IsElementwise():
			return nodeError(u, "its lambda holds %s, want elementwise ops of args", NodeText(x))
		}
	}
	for _, identity := range u.Src[n+1 : 2*n+1] {
		if len(v.free.Of(identity)) > 0 {
			return nodeError(u, "identity %s depends on a range", NodeText(identity))
		}
	}
	scope := v.free.Of(values[0])
	for i, value := range values[1:] {
		for _, r := range v.free.Of(value) {
			if r != u.ReduceRange() && !slices.Contains(scope, r) && r.Src[0].Op != OpConst {
				return nodeError(u, "component %d alone uses %s, whose extent is not constant", i+1, NodeText(r))
			}
		}
	}
	return nil
}

// argsOutside looks for ARGs that are reached other than through a lambda.
func (v *kernelVerifier) argsOutside(root *UOp) (err error) {
	Walk(func(u *UOp) []*UOp {
		switch {
		case err != nil:
			return nil
		case u.Op == OpArg:
			err = nodeError(u, "stands outside a reduce's lambda")
		case u.Op == OpReduce && u.Arg.(ReduceArg).Op == OpInvalid:
			return u.Src[:2*u.Arg.(ReduceArg).N+1]
		}
		return u.Src
	}, root)
	return err
}

// store checks that a store's loops cover what it uses.
func (v *kernelVerifier) store(u *UOp) error {
	if u.Src[0].Op != OpParam || u.Src[0].Arg.(ParamArg).Format != "" {
		return nodeError(u, "writes %s, want a plain param", NodeText(u.Src[0]))
	}
	ranges := u.Ranges()
	for _, s := range u.Src[:2+len(u.Indices())] {
		for _, r := range v.free.Of(s) {
			if !slices.Contains(ranges, r) {
				return nodeError(u, "%s is used but is no loop of the store", NodeText(r))
			}
		}
	}
	for i, r := range ranges {
		for _, outer := range v.free.Of(r.Src[0]) {
			if !slices.Contains(ranges[:i], outer) {
				return nodeError(u, "the extent of loop %d uses %s, which is no outer loop", i, NodeText(outer))
			}
		}
	}
	return nil
}
