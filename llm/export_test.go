package llm

// CompiledSteps counts the steps and loops of one token that a session has loaded.
func (s *Session) CompiledSteps() (n int) {
	for k := range s.steps {
		if k.tokens == 1 {
			n++
		}
	}
	return n + len(s.loops)
}
