package childprocess

import (
	"encoding/json"
	"io"
)

// Answers passes on the JSON values that a child writes until it is gone or writes something
// else; then it closes the channel.
func Answers[T any](from io.Reader, to chan<- T) {
	defer close(to)
	in := json.NewDecoder(from)
	for {
		var v T
		if in.Decode(&v) != nil {
			return
		}
		to <- v
	}
}
