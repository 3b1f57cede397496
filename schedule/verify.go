package schedule

import (
	"fmt"
	"slices"

	"tgc/ir"
)

// verify checks the contract of the state as it stands between two passes:
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
func (s *scheduler) verify() error {
	if s.out != nil {
		return s.out.verify()
	}
	if len(s.values) == 0 {
		return nil // a tensor graph, which the caller has verified
	}
	for i := range s.versions {
		if err := s.verifyVersion(i); err != nil {
			return fmt.Errorf("version %d: %w", i, err)
		}
	}
	for _, v := range s.values {
		if v.dead {
			continue
		}
		if err := s.verifyValue(v); err != nil {
			return fmt.Errorf("value %s: %w", v.label(), err)
		}
	}
	if err := s.verifyAcyclic(); err != nil {
		return err
	}
	return s.verifyLaunches()
}

func (s *scheduler) verifyVersion(slot int) error {
	v := s.versions[slot]
	if arg, ok := v.param.Arg.(ir.ParamArg); !ok || v.param.Op != ir.OpParam || arg.Slot != slot || v.param.DType != v.buffer.DType && v.buffer.Op != ir.OpValue {
		return fmt.Errorf("its param is %s", ir.NodeText(v.param))
	}
	if v.writer >= len(s.values) || v.previous >= len(s.versions) || v.under >= len(s.versions) {
		return fmt.Errorf("it names a value or version that is not there")
	}
	for _, w := range v.waits {
		if w < 0 || w >= len(s.values) {
			return fmt.Errorf("it waits for value %d, which is not there", w)
		}
	}
	if v.previous < 0 {
		return nil
	}
	before := s.versions[v.previous]
	switch {
	case before.buffer != v.buffer:
		return fmt.Errorf("version %d before it is one of another buffer", v.previous)
	case before.number+1 != v.number:
		return fmt.Errorf("it is state %d of its buffer, the one before it is %d", v.number, before.number)
	case v.writer < 0 || s.values[v.writer].target != slot:
		return fmt.Errorf("no value writes it")
	}
	return nil
}

func (s *scheduler) verifyValue(v *value) error {
	if arg, ok := v.node.Arg.(ir.ValueArg); !ok || v.node.Op != ir.OpValue || arg.ID != v.id {
		return fmt.Errorf("its node is %s", ir.NodeText(v.node))
	}
	if len(v.node.Src) != len(v.ranges) || v.node.DType != v.body.DType {
		return fmt.Errorf("its node %s has not the dtype of its body, %s, and an extent for each of %d ranges", ir.NodeText(v.node), v.body.DType, len(v.ranges))
	}
	for i, r := range v.ranges {
		if r.Op != ir.OpRange || r.Src[0] != v.node.Src[i] || slices.Contains(v.ranges[:i], r) {
			return fmt.Errorf("range %d is no range of its own with the extent of the node", i)
		}
	}
	loops := sorted(v.storeLoops())
	for _, x := range append(slices.Clone(v.storeIndex()), v.body) {
		for _, r := range s.free.of(x) {
			if !slices.Contains(loops, r) {
				return fmt.Errorf("it uses range %d, which is no loop of its store", rangeID(r))
			}
			if isClosed(r) {
				return fmt.Errorf("its loop %d is named as a closed range", rangeID(r))
			}
		}
	}
	if v.target >= len(s.versions) || v.target >= 0 && s.versions[v.target].writer != v.id {
		return fmt.Errorf("it writes version %d, which another value writes", v.target)
	}
	return s.verifyReads(v)
}

// verifyReads checks the nodes of a value and what they read.
func (s *scheduler) verifyReads(v *value) error {
	for _, u := range ir.Toposort(append(slices.Clone(v.storeIndex()), v.body)...) {
		if err := ir.VerifyNode(u); err != nil {
			return err
		}
		if u.Op == ir.OpParam {
			if slot := u.Arg.(ir.ParamArg).Slot; slot >= len(s.versions) || s.versions[slot].param != u {
				return fmt.Errorf("it reads param %d, which is that of no version", slot)
			}
		}
		if u.Op != ir.OpValue {
			continue
		}
		id := u.Arg.(ir.ValueArg).ID
		switch {
		case id < 0 || id >= len(s.values) || s.values[id].dead:
			return fmt.Errorf("it reads value %d, which is dead", id)
		case s.values[id].node != u:
			return fmt.Errorf("it reads value %d by a node of its own", id)
		}
	}
	return nil
}

// verifyAcyclic checks that values can be ordered by what they read.
func (s *scheduler) verifyAcyclic() error {
	const open, done = 1, 2
	state := make([]byte, len(s.values))
	var visit func(id int) error
	visit = func(id int) error {
		switch state[id] {
		case open:
			return fmt.Errorf("value %s reads itself", s.values[id].label())
		case done:
			return nil
		}
		state[id] = open
		for _, other := range s.readsOf(s.values[id]).values {
			if err := visit(other); err != nil {
				return err
			}
		}
		state[id] = done
		return nil
	}
	for _, v := range s.values {
		if !v.dead {
			if err := visit(v.id); err != nil {
				return err
			}
		}
	}
	return nil
}

// verifyLaunches checks that what a value reads is stored by an earlier launch.
func (s *scheduler) verifyLaunches() error {
	if len(s.launches) == 0 {
		return nil
	}
	at := make(map[int]int)
	for i, launch := range s.launches {
		for _, k := range launch {
			for _, v := range k.values {
				if _, twice := at[v.id]; twice || v.dead {
					return fmt.Errorf("value %s is dead or stored twice", v.label())
				}
				at[v.id] = i
			}
		}
	}
	for id, launch := range at {
		for _, other := range s.readsOf(s.values[id]).values {
			if stored, ok := at[other]; !ok || stored >= launch {
				return fmt.Errorf("value %s of launch %d reads %s, which no earlier launch stores", s.values[id].label(), launch, s.values[other].label())
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
