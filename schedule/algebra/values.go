package algebra

import "tgc/schedule/state"

// EachValue is a pass that rewrites the values with reduces one by one, those
// made on the way included.
func EachValue(rewrite func(*state.State, *state.Value)) func(*state.State) {
	return func(s *state.State) {
		for i := 0; i < len(s.Values); i++ {
			if v := s.Values[i]; !v.Dead && s.Height(v.Body) > 0 {
				rewrite(s, v)
			}
		}
	}
}

// EachReader is EachValue for a rewrite that follows readers.
func EachReader(rewrite func(*state.State, *state.Value)) func(*state.State) {
	all := EachValue(rewrite)
	return func(s *state.State) {
		s.MarkDead()
		s.IndexUses()
		all(s)
	}
}
