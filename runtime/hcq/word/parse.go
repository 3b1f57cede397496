package word

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads words in hexadecimal between white space, with or without 0x; a # begins
// a comment.
func Parse(text string) ([]uint32, error) {
	var words []uint32
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		for field := range strings.FieldsSeq(line) {
			w, err := strconv.ParseUint(strings.TrimPrefix(field, "0x"), 16, 32)
			if err != nil {
				return nil, fmt.Errorf("line %d: %q, want a word of 32 bits in hexadecimal", number, field)
			}
			words = append(words, uint32(w))
		}
	}
	return words, nil
}
