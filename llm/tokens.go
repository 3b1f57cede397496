package llm

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"tgc/gguf"
)

// ParseTokens reads token ids separated by commas or spaces, each below the
// size of the vocabulary.
func ParseTokens(list string, vocabulary int) ([]int32, error) {
	fields := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	ids := make([]int32, 0, len(fields))
	for i, field := range fields {
		id, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("token %d is %s, want a number", i+1, gguf.Quote(field))
		}
		if id < 0 || id >= int64(vocabulary) {
			return nil, fmt.Errorf("token %d is %d, outside the vocabulary of %d tokens", i+1, id, vocabulary)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}
