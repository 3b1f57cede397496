package state

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
)

// Verify checks the contract of the state between two passes:
//
//   - nodes keep the rules of the op table;
//   - a value's node has its id, dtype and the extents of its ranges, which
//     differ from each other;
//   - the free ranges of a body and of the place where it is stored are loops of
//     the store, and none of them is named as closed;
//   - what is read is a value that is not dead, by its own node and with as many
//     indices as it has axes, or a version by its own param;
//   - values do not read each other in a circle;
//   - versions of one buffer follow each other, each written by the value whose
//     target it is;
//   - launches, once there are any, hold every live value once, after what it
//     reads;
//   - kernels that are written keep the contract of kernels (ir.VerifyKernel).
func (s *State) Verify() error {
	if s.Out != nil {
		return s.Out.verify()
	}
	if len(s.Values) == 0 {
		return nil // a tensor graph, which the caller has verified
	}
	for i := range s.Versions {
		if err := s.verifyVersion(i); err != nil {
			return fmt.Errorf("version %d: %w", i, err)
		}
	}
	for _, v := range s.Values {
		if v.Dead {
			continue
		}
		if err := s.verifyValue(v); err != nil {
			return fmt.Errorf("value %s: %w", v.Label(), err)
		}
	}
	if err := s.verifyAcyclic(); err != nil {
		return err
	}
	return s.verifyLaunches()
}

func (s *Graph) verifyVersion(slot int) error {
	v := s.Versions[slot]
	if arg, ok := v.Param.Arg.(ir.ParamArg); !ok || v.Param.Op != ir.OpParam || arg.Slot != slot || v.Param.DType != v.Buffer.DType && v.Buffer.Op != ir.OpValue {
		return fmt.Errorf("its param is %s", ir.NodeText(v.Param))
	}
	if v.Writer >= len(s.Values) || v.Previous >= len(s.Versions) || v.Under >= len(s.Versions) {
		return fmt.Errorf("it names a value or version that is not there")
	}
	for _, w := range v.Waits {
		if w < 0 || w >= len(s.Values) {
			return fmt.Errorf("it waits for value %d, which is not there", w)
		}
	}
	if v.Previous < 0 {
		return nil
	}
	before := s.Versions[v.Previous]
	switch {
	case before.Buffer != v.Buffer:
		return fmt.Errorf("version %d before it is one of another buffer", v.Previous)
	case before.Number+1 != v.Number:
		return fmt.Errorf("it is state %d of its buffer, the one before it is %d", v.Number, before.Number)
	case v.Writer < 0 || s.Values[v.Writer].Target != slot:
		return fmt.Errorf("no value writes it")
	}
	return nil
}

func (s *Graph) verifyValue(v *Value) error {
	if arg, ok := v.Node.Arg.(ir.ValueArg); !ok || v.Node.Op != ir.OpValue || arg.ID != v.ID {
		return fmt.Errorf("its node is %s", ir.NodeText(v.Node))
	}
	if len(v.Node.Src) != len(v.Ranges) || v.Node.DType != v.Body.DType {
		return fmt.Errorf("its node %s has not the dtype of its body, %s, and an extent for each of %d ranges", ir.NodeText(v.Node), v.Body.DType, len(v.Ranges))
	}
	for i, r := range v.Ranges {
		if r.Op != ir.OpRange || r.Src[0] != v.Node.Src[i] || slices.Contains(v.Ranges[:i], r) {
			return fmt.Errorf("range %d is no range of its own with the extent of the node", i)
		}
	}
	loops := expr.Sorted(v.StoreLoops())
	for _, x := range append(slices.Clone(v.StoreIndex()), v.Body) {
		for _, r := range s.Free.Of(x) {
			if !slices.Contains(loops, r) {
				return fmt.Errorf("it uses range %d, which is no loop of its store", expr.RangeID(r))
			}
			if expr.IsClosed(r) {
				return fmt.Errorf("its loop %d is named as a closed range", expr.RangeID(r))
			}
		}
	}
	if v.Target >= len(s.Versions) || v.Target >= 0 && s.Versions[v.Target].Writer != v.ID {
		return fmt.Errorf("it writes version %d, which another value writes", v.Target)
	}
	return s.verifyReads(v)
}

// verifyReads checks the nodes of a value and what they read.
func (s *Graph) verifyReads(v *Value) error {
	for _, u := range ir.Toposort(append(slices.Clone(v.StoreIndex()), v.Body)...) {
		if err := ir.VerifyNode(u); err != nil {
			return err
		}
		if u.Op == ir.OpParam {
			if slot := u.Arg.(ir.ParamArg).Slot; slot >= len(s.Versions) || s.Versions[slot].Param != u {
				return fmt.Errorf("it reads param %d, which is that of no version", slot)
			}
		}
		if u.Op != ir.OpValue {
			continue
		}
		id := u.Arg.(ir.ValueArg).ID
		switch {
		case id < 0 || id >= len(s.Values) || s.Values[id].Dead:
			return fmt.Errorf("it reads value %d, which is dead", id)
		case s.Values[id].Node != u:
			return fmt.Errorf("it reads value %d by a node of its own", id)
		}
	}
	return nil
}

// verifyAcyclic checks that values can be ordered by what they read.
func (s *Graph) verifyAcyclic() error {
	const open, done = 1, 2
	state := make([]byte, len(s.Values))
	var visit func(id int) error
	visit = func(id int) error {
		switch state[id] {
		case open:
			return fmt.Errorf("value %s reads itself", s.Values[id].Label())
		case done:
			return nil
		}
		state[id] = open
		for _, other := range s.ReadsOf(s.Values[id]).Values {
			if err := visit(other); err != nil {
				return err
			}
		}
		state[id] = done
		return nil
	}
	for _, v := range s.Values {
		if !v.Dead {
			if err := visit(v.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// verifyLaunches checks that what a value reads is stored by an earlier launch.
func (s *State) verifyLaunches() error {
	if len(s.Launches) == 0 {
		return nil
	}
	at := make(map[int]int)
	for i, launch := range s.Launches {
		for _, k := range launch {
			for _, v := range k.Values {
				if _, twice := at[v.ID]; twice || v.Dead {
					return fmt.Errorf("value %s is dead or stored twice", v.Label())
				}
				at[v.ID] = i
			}
		}
	}
	for id, launch := range at {
		for _, other := range s.ReadsOf(s.Values[id]).Values {
			if stored, ok := at[other]; !ok || stored >= launch {
				return fmt.Errorf("value %s of launch %d reads %s, which no earlier launch stores", s.Values[id].Label(), launch, s.Values[other].Label())
			}
		}
	}
	return nil
}

// verify checks a schedule: every kernel, and that its arguments are there.
func (s *Schedule) verify() error {
	for _, l := range s.Launches {
		for _, k := range l.Kernels {
			if err := ir.VerifyKernel(k.AST); err != nil {
				return fmt.Errorf("kernel %s: %w", k.Name, err)
			}
			for _, arg := range k.Args {
				if arg < 0 || arg >= len(s.Buffers) {
					return fmt.Errorf("kernel %s: there is no buffer %d", k.Name, arg)
				}
			}
		}
	}
	return nil
}
