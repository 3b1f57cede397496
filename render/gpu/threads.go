package gpu

import (
	"fmt"

	"tgc/ir/program"
)

// Instructions of threads and warps.

func (s *Selector) threads(in *program.Instr) error {
	switch in.Op {
	case program.ThreadIndex:
		s.threadIndex(in)
	case program.Barrier, program.SyncWarp, program.Fence, program.ClusterArrive, program.ClusterWait:
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
