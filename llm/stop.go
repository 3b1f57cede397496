package llm

import (
	"errors"
	"fmt"
	"strings"
)

// ErrStop ends a generation without being its error: Request.Token returns it.
var ErrStop = errors.New("llm: stop")

// StopMatcher looks for the texts that end an answer, in a stream of text. The parts of
// the stream may be cut anywhere: a text that is found over several of them is found.
type StopMatcher struct {
	stops   []string
	pending string // the end of the stream that may become a stop
	stopped bool
}

// NewStopMatcher looks for any of stops, of which none may be empty.
func NewStopMatcher(stops []string) (*StopMatcher, error) {
	for i, s := range stops {
		if s == "" {
			return nil, fmt.Errorf("stop text %d is empty, want at least one character", i+1)
		}
	}
	return &StopMatcher{stops: stops}, nil
}

// Next takes more of the stream and returns what is certainly before any stop. Once a
// stop was found the rest is dropped; the stop that begins first counts.
func (m *StopMatcher) Next(text string) (before string, stopped bool) {
	if m.stopped {
		return "", true
	}
	m.pending += text
	first := -1
	for _, s := range m.stops {
		if i := strings.Index(m.pending, s); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	// A longer stop may begin before the one that is complete: it waits for its end.
	hold := len(m.pending) - m.tail()
	if first >= 0 && first <= hold {
		before, m.pending, m.stopped = m.pending[:first], "", true
		return before, true
	}
	before, m.pending = m.pending[:hold], m.pending[hold:]
	return before, false
}

// tail is the length of the longest end of what is pending that begins a stop.
func (m *StopMatcher) tail() int {
	longest := 0
	for _, s := range m.stops {
		for n := min(len(s)-1, len(m.pending)); n > longest; n-- {
			if strings.HasSuffix(m.pending, s[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// Flush returns what was held back, at the end of the stream.
func (m *StopMatcher) Flush() string {
	text := m.pending
	m.pending = ""
	if m.stopped {
		return ""
	}
	// A stop may be complete that had waited for a longer one.
	for i := range text {
		for _, s := range m.stops {
			if strings.HasPrefix(text[i:], s) {
				m.stopped = true
				return text[:i]
			}
		}
	}
	return text
}

// Stopped tells whether a stop was found.
func (m *StopMatcher) Stopped() bool { return m.stopped }
