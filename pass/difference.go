package pass

import (
	"regexp"
	"strings"

	"tgc/internal/lists"
)

// numbers are names of nodes in a text form. All forms but the program count them anew
// when something before them changes.
var numbers = regexp.MustCompile(`%\d+`)

func splitLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// mostCells bounds the table of a difference: past it, all lines between the first and
// the last that differ count as changed.
const mostCells = 1 << 24

// difference lists the lines of before and of after that a heaviest common subsequence of
// the two leaves over; renamed: names of nodes count for nothing. Wanted lines weigh
// less than others: of two lines that changed places, the wanted one has moved.
func difference(before, after []string, wanted func(line string) bool, renamed bool) (gone, made []string) {
	key := func(lines []string) []string {
		if !renamed {
			return lines
		}
		return lists.Map(lines, func(line string) string { return numbers.ReplaceAllString(line, "%") })
	}
	x, y := key(before), key(after)
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y, before, after = x[1:], y[1:], before[1:], after[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	before, after = before[:len(x)], after[:len(y)]
	if len(x)*len(y) > mostCells {
		return before, after
	}
	// heaviest[i][j] is the weight of a common subsequence of x[i:] and y[j:].
	heaviest := lists.Make(len(x)+1, func(int) []int32 { return make([]int32, len(y)+1) })
	for i := len(x) - 1; i >= 0; i-- {
		weight := int32(2)
		if wanted(before[i]) {
			weight = 1
		}
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				heaviest[i][j] = heaviest[i+1][j+1] + weight
			} else {
				heaviest[i][j] = max(heaviest[i+1][j], heaviest[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && heaviest[i+1][j] >= heaviest[i][j+1]:
			gone = append(gone, before[i])
			i++
		default:
			made = append(made, after[j])
			j++
		}
	}
	return gone, made
}
