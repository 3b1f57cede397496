package safetensors

import (
	"fmt"
	"strconv"
)

// Error is a fault in a file: where it is, what was found, what was wanted.
type Error struct {
	File    string // path as given to Open
	Subject string // such as `tensor "embed.weight"`; may be empty
	Offset  int64  // byte in the file; -1 if the fault has no place
	Err     error
}

// Error formats the fault as `safetensors: FILE: SUBJECT at 0xOFFSET: ...`,
// without control bytes, whatever the names in the file hold.
func (e *Error) Error() string {
	place := e.Subject
	if e.Offset >= 0 {
		if place != "" {
			place += " "
		}
		place += fmt.Sprintf("at 0x%x", e.Offset)
	}
	if place != "" {
		place += ": "
	}
	return "safetensors: " + printable(e.File) + ": " + place + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// quote makes a name from a file safe to print: quoted, cut after 64 bytes.
func quote(s string) string {
	const limit = 64
	if len(s) > limit {
		return strconv.Quote(s[:limit]) + "..."
	}
	return strconv.Quote(s)
}

// printable leaves an ordinary path as it is and quotes any other.
func printable(path string) string {
	if quoted := strconv.Quote(path); path == "" || quoted != `"`+path+`"` {
		return quoted
	}
	return path
}
