package gguf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrMissing is wrapped by the error of a getter whose key the file lacks.
var ErrMissing = errors.New("missing")

// Error is a fault in a file: where it is, what was found, what was wanted.
type Error struct {
	File    string // path as given to Open
	Subject string // such as `tensor "blk.0.ffn_up.weight"`; may be empty
	Offset  int64  // byte in the file; -1 if the fault has no place
	Err     error  // what was got, and what was wanted
}

// Error formats the fault as `gguf: FILE: SUBJECT at 0xOFFSET: ...`. It holds
// no control bytes, whatever the names in the file hold.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("gguf: ")
	b.WriteString(printablePath(e.File))
	b.WriteString(": ")
	switch {
	case e.Subject != "" && e.Offset >= 0:
		fmt.Fprintf(&b, "%s at 0x%x: ", e.Subject, e.Offset)
	case e.Subject != "":
		b.WriteString(e.Subject + ": ")
	case e.Offset >= 0:
		fmt.Fprintf(&b, "at 0x%x: ", e.Offset)
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns the cause, so that errors.Is finds ErrMissing, fs.ErrNotExist
// and the like.
func (e *Error) Unwrap() error { return e.Err }

// quoteLimit is the length in bytes that a quoted name or value is cut to,
// without the quotes.
const quoteLimit = 64

// Quote returns a name from a file in a form that is safe to print: quoted,
// without control characters, and cut after 64 bytes.
func Quote(s string) string { return quote(s, quoteLimit) }

// quote builds the quoted form rune by rune, because the limit is on what is
// printed: an escape can take ten bytes for one rune.
func quote(s string, limit int) string {
	b := make([]byte, 1, limit+8)
	b[0] = '"'
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		piece := s[i : i+n]
		if r == '"' || r == '\\' || r == utf8.RuneError || !strconv.IsPrint(r) {
			piece = strconv.Quote(piece)
			piece = piece[1 : len(piece)-1]
		}
		if len(b)-1+len(piece) > limit {
			return string(b) + `"...`
		}
		b = append(b, piece...)
		i += n
	}
	return string(append(b, '"'))
}

// printablePath leaves an ordinary path as it is, quotes one with unprintable
// characters, and keeps only the end of a very long one (the file's name).
func printablePath(path string) string {
	const limit = 200
	if len(path) > limit {
		tail := path[len(path)-limit:]
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
		path = "..." + tail
	}
	if path == "" {
		return `""`
	}
	if quoted := quote(path, 4*limit); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}
