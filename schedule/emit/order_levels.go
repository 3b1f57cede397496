package emit

import "tgc/schedule/state"

// OrderLevels drafts the kernels and puts them into launches: those of one
// dependence level, or one by one. The values of an update are one kernel.
func OrderLevels(s *state.State) {
	s.NameValues()
	live := s.LiveValues()
	before := s.Edges(live)
	level, err := s.Levels(live, before)
	if err != nil {
		s.Fail("%w", err)
		return
	}
	if s.Opt.Off.Has(state.OrderLevels) {
		live = state.Topological(live, before)
	}
	updates := make(map[int]*state.Draft)
	s.Launches = nil
	for _, v := range live {
		if k, ok := updates[v.Update]; ok && v.Update > 0 {
			k.Values = append(k.Values, v)
			continue
		}
		k := &state.Draft{Values: []*state.Value{v}}
		updates[v.Update] = k
		at := len(s.Launches)
		if !s.Opt.Off.Has(state.OrderLevels) {
			at = level[v.ID]
		}
		for len(s.Launches) <= at {
			s.Launches = append(s.Launches, nil)
		}
		s.Launches[at] = append(s.Launches[at], k)
	}
	s.Launches = apart(s)
	for i, launch := range s.Launches {
		if len(launch) < 2 || !s.Opt.Explain {
			continue
		}
		for _, k := range launch {
			s.Record(k.Values[0], true, "one dependence level", state.Number{Name: "launch", Value: int64(i)}, state.Number{Name: "drafts", Value: int64(len(launch))})
		}
	}
}

// apart gives kernels launches of their own, after the others of their level, where that was decided
// of their first value.
func apart(s *state.State) (launches [][]*state.Draft) {
	for _, launch := range s.Launches {
		together, alone := launch[:0:0], [][]*state.Draft(nil)
		for _, k := range launch {
			if choice, ok := s.DecisionOn(k.Values[0], state.OrderLevels); ok && choice == state.Decline && len(launch) > 1 {
				alone = append(alone, []*state.Draft{k})
			} else {
				together = append(together, k)
			}
		}
		if len(together) > 0 {
			launches = append(launches, together)
		}
		launches = append(launches, alone...)
	}
	return launches
}
