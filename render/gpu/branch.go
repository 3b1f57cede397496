package gpu

import "tgc/ir/program"

// Arms renders the two arms of a branch. Neither has waited for what the other waited for,
// and where the whole block takes one of them, their shared memory lies in one place.
func (s *Selector) Arms(in *program.Instr, body, other func() error) error {
	waited, shared := s.Waited, s.SharedBytes
	if err := body(); err != nil {
		return err
	}
	bodyWaited, bodyShared := s.Waited, s.SharedBytes
	s.Waited = waited
	if s.uniform[in.Args[0]] {
		s.SharedBytes = shared
	}
	if err := other(); err != nil {
		return err
	}
	s.Waited, s.SharedBytes = s.Waited && bodyWaited, max(s.SharedBytes, bodyShared)
	return nil
}
