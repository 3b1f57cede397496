package gpu

import (
	"fmt"
	"slices"

	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// Instructions of threads and warps.

func (s *Selector) threads(in *program.Instr) error {
	switch in.Op {
	case program.ThreadIndex:
		s.threadIndex(in)
	case program.Barrier, program.SyncWarp, program.Fence, program.ClusterArrive, program.ClusterWait:
		s.print.Do(in)
	case program.WaitCopies:
		if s.Desc.SM < program.CopySM {
			return fmt.Errorf("%s has no asynchronous copies", s.Desc.Name)
		}
		s.print.Do(in)
	case program.PeerPtr:
		s.peerPtr(in)
	case program.ShuffleLane:
		s.shuffleLane(in)
	case program.WaitGrid, program.LaunchNext:
		if s.Desc.StartsEarly() {
			s.print.Do(in)
		}
		s.Waited = s.Waited || in.Op == program.WaitGrid
	case program.Atomic:
		return s.atomic(in)
	case program.Mma:
		shape := program.MmaOf(in.Args[0].Type, in.Args[1].Type, in.Args[2].Type)
		if s.Desc.SM < shape.SM {
			return fmt.Errorf("%s has no mma.%s", s.Desc.Name, shape.Name)
		}
		s.print.Mma(in, shape.Name)
	case program.GroupMma:
		return s.groupMma(in)
	case program.Dot4:
		s.dot4(in)
	default:
		return fmt.Errorf("a GPU has no %s", in.Op)
	}
	return nil
}

func (s *Selector) threadIndex(in *program.Instr) {
	axes := s.Program.Block
	if len(axes) == 0 || axes[in.Lane] == 1 {
		s.set(in.Result, []Operand{{}})
		return
	}
	axis := "xyz"[len(axes)-1-in.Lane]
	o := s.Once("thread "+string(axis), func() Operand { return s.print.Thread(axis) })
	s.set(in.Result, []Operand{o})
}

// shuffleLane exchanges whole variables.
func (s *Selector) shuffleLane(in *program.Instr) {
	other := s.Lane(in.Args[1], 0)
	t := s.StorageType(in.Result)
	out := s.Storage(in.Args[0])
	out = append(out[:0:0], out...)
	for i := range out {
		out[i] = s.print.Shuffle(s.print.Use(out[i], t), t, other)
	}
	s.Set(in.Result, out)
}

func (s *Selector) atomic(in *program.Instr) error {
	a := s.Address(in.Args[0])
	if a.array != nil {
		return fmt.Errorf("an atomic access of an array without memory")
	}
	t := s.TypeOf(in.Result)
	o := s.print.Atomic(in, a, t, s.LaneAs(in.Args[1], 0, t))
	s.set(in.Result, []Operand{o})
	return nil
}

// HasGroups reports a program with products of warpgroups, which read what ordinary stores have written only behind
// a fence.
func (s *Selector) HasGroups() bool { return s.groups != nil }

// groupMma starts a product.
func (s *Selector) groupMma(in *program.Instr) error {
	if !s.Desc.HasGroupMatrices() {
		return fmt.Errorf("%s has no wgmma", s.Desc.Name)
	}
	from := s.Storage(in.Args[0])
	adds := slices.ContainsFunc(from, func(o Operand) bool { return !o.Literal() || o.Bits != 0 })
	continues := adds && s.continues(in, from)
	if !continues {
		if adds && slices.ContainsFunc(from, s.isRunning) {
			s.groupWait()
		}
		from = s.accumulators(in, from, adds)
		if adds {
			s.print.GroupFence(from)
		} else {
			s.print.GroupFence(nil)
		}
	}
	s.print.GroupMma(in, from, adds)
	s.groups.running = slices.DeleteFunc(s.groups.running, func(of []Operand) bool { return continues && of[0].Same(from[0]) })
	s.groups.running = append(s.groups.running, from)
	s.Set(in.Result, slices.Clone(from))
	return nil
}

// continues reports a product that adds to what one that runs gives, and to nothing else.
func (s *Selector) continues(in *program.Instr, from []Operand) bool {
	return !slices.Contains(s.groups.inPlace[in], false) && slices.ContainsFunc(s.groups.running, func(of []Operand) bool {
		return slices.EqualFunc(of, from, Operand.Same)
	})
}

// accumulators are variables of a product's own, with the values of others if it adds to them.
func (s *Selector) accumulators(in *program.Instr, from []Operand, adds bool) []Operand {
	out := slices.Clone(from)
	for i, inPlace := range s.groups.inPlace[in] {
		if inPlace && adds && !from[i].Literal() {
			continue
		}
		out[i] = s.print.Declare(F32)
		if adds {
			s.print.Move(out[i], from[i])
		}
	}
	return out
}

func (s *Selector) isRunning(o Operand) bool {
	return slices.ContainsFunc(s.groups.running, func(of []Operand) bool { return slices.ContainsFunc(of, o.Same) })
}

// usesRunning reports an instruction before which all products must have ended.
func (s *Selector) usesRunning(in *program.Instr) bool {
	switch {
	case s.groups == nil || len(s.groups.running) == 0 || in.Op == program.GroupMma:
		return false
	case dep.Of(in)&(dep.Synchronises|dep.Controls) != 0:
		return true
	case in.Result != nil && passesLanes(in):
		return false
	}
	return slices.ContainsFunc(in.Args, func(v *program.Value) bool {
		h := s.values[v.ID]
		return isSum(v.Type) && h != nil && slices.ContainsFunc(h.lanes, s.isRunning)
	})
}

// groupWait waits for what runs.
func (s *Selector) groupWait() {
	if s.groups == nil || len(s.groups.running) == 0 {
		return
	}
	s.print.GroupWait(s.groups.running)
	s.groups.running = nil
}
