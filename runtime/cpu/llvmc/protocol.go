package llvmc

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// A conversation: the parent sends one settings frame (JSON), the child
// answers with one hello frame (JSON); then each request frame (IR text) gets
// one reply frame, whose first byte is a status. A frame is its length in
// bytes (32 bits, little endian) and its bytes.

// maxFrame bounds a frame in bytes; a longer one is a broken peer.
const maxFrame = 1 << 30

// settings is what a child needs to know before its first compile.
type settings struct {
	Triple   string
	CPU      string
	Features string
	Passes   string
	Level    CodegenLevel
	Assembly bool // text in place of an object
}

// hello is the child's answer to its settings.
type hello struct {
	Error string
	// NoLLVM marks an Error that means ErrNoLLVM.
	NoLLVM bool
	Host   Host
	// Triple, CPU and Features are what the child compiles for.
	Triple, CPU, Features string
}

// Status bytes of a reply.
const (
	replyObject byte = iota // the rest is the object
	replyError              // the rest is LLVM's message
)

func writeFrame(w io.Writer, parts ...[]byte) error {
	total := 0
	for _, part := range parts {
		total += len(part)
	}
	if total > maxFrame {
		return fmt.Errorf("frame of %d bytes, want at most %d", total, maxFrame)
	}
	frame := make([]byte, 4, 4+total)
	binary.LittleEndian.PutUint32(frame, uint32(total))
	for _, part := range parts {
		frame = append(frame, part...)
	}
	_, err := w.Write(frame)
	return err
}

func readFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxFrame {
		return nil, fmt.Errorf("frame of %d bytes, want at most %d", n, maxFrame)
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(r, frame)
	return frame, err
}

func writeJSON(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeFrame(w, text)
}

func readJSON(r io.Reader, v any) error {
	text, err := readFrame(r)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}
