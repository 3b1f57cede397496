package cudatools

import (
	"regexp"
	"strings"
)

// Loop is a run of instructions, first and last included, that a branch back
// repeats.
type Loop struct{ First, Last int }

var (
	labelPattern  = regexp.MustCompile(`^(\.L\w+|\$?[\w$.]+):`)
	branchPattern = regexp.MustCompile("BRA(?:\\.\\S+)? (?:!?U?P\\w+, )?`\\((\\.L\\w+)\\)")
)

// control finds the entry's own instructions, which end at its last EXIT (the
// subroutines behind it are slow paths of divisions and roots), and the loops
// among them in the order of their first instructions, outer ones first.
func (l *Listing) control() {
	labels := make(map[string]int)
	at, inEntry := 0, true
	for line := range strings.Lines(l.Text) {
		if m := labelPattern.FindStringSubmatch(line); m != nil {
			labels[m[1]] = at
			inEntry = inEntry && !strings.HasPrefix(m[1], "$")
			continue
		}
		m := instruction.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if b := branchPattern.FindStringSubmatch(line); b != nil && inEntry {
			if first, ok := labels[b[1]]; ok && first < at {
				l.addLoop(Loop{first, at})
			}
		}
		at++
		if inEntry && m[1] == "EXIT" {
			l.Entry = at
		}
	}
}

// addLoop keeps loops sorted; several branches back to one place are one loop.
func (l *Listing) addLoop(loop Loop) {
	at := len(l.Loops)
	for at > 0 && l.Loops[at-1].First >= loop.First {
		at--
	}
	if at < len(l.Loops) && l.Loops[at].First == loop.First {
		l.Loops[at].Last = max(l.Loops[at].Last, loop.Last)
		return
	}
	l.Loops = append(l.Loops[:at], append([]Loop{loop}, l.Loops[at:]...)...)
}

// Executed is how many instructions a thread executes that takes every branch
// forward's instructions too, where loop i runs trips[i] times.
func (l *Listing) Executed(trips []int64) int64 {
	total := int64(0)
	for at := range l.Entry {
		n := int64(1)
		for i, loop := range l.Loops {
			if at >= loop.First && at <= loop.Last {
				n *= trips[i]
			}
		}
		total += n
	}
	return total
}
