// Package mapfile maps files and gets memory outside the Go heap, for formats
// whose tensors are used where they lie.
package mapfile

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"

	"tgc/internal/pages"
)

// Mapping is a piece of memory got from the system: a mapped file, or anonymous.
// Bytes may not be used after Unmap.
type Mapping struct{ Bytes []byte }

// Unmap gives the memory back.
func (m Mapping) Unmap() error {
	if len(m.Bytes) == 0 {
		return nil
	}
	if err := pages.Unmap(m.Bytes); err != nil {
		return fmt.Errorf("unmap: %w", err)
	}
	return nil
}

// Open maps a regular file for reading. Opening does not block on a named
// pipe, and anything but a regular file (after links) is refused.
func Open(path string) (Mapping, error) {
	file, err := openWithoutWaiting(path)
	if err != nil {
		return Mapping{}, fmt.Errorf("cannot open: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return Mapping{}, fmt.Errorf("cannot open: %w", errors.Unwrap(err))
	case info.IsDir():
		return Mapping{}, errors.New("is a directory, want a regular file")
	case !info.Mode().IsRegular():
		return Mapping{}, errors.New("is not a regular file")
	case info.Size() == 0:
		return Mapping{}, nil // cannot be mapped; parsers call it too short
	case info.Size() > math.MaxInt:
		return Mapping{}, fmt.Errorf("file is %d bytes, more than can be mapped", info.Size())
	}
	data, err := pages.MapFile(file, int(info.Size()))
	if err != nil {
		return Mapping{}, fmt.Errorf("cannot map %d bytes: %w", info.Size(), err)
	}
	return Mapping{data}, nil
}

// ErrShortened says that a file is shorter than when it was mapped.
var ErrShortened = errors.New("a file has become shorter while it was read")

// Guard runs a function that reads mapped memory. Where the file's end is gone by now, that
// is ErrShortened and not the end of the program. It guards the calling goroutine alone.
func Guard(read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		if at, ok := fault.(interface{ Addr() uintptr }); ok {
			err = fmt.Errorf("%w (at address %#x)", ErrShortened, at.Addr())
			return
		}
		panic(fault)
	}()
	return read()
}

// Memory returns zeroed memory outside the Go heap, so that a model of
// gigabytes neither doubles the collector's goal nor delays it. Large pages make
// its first touch several times faster.
func Memory(size int) (Mapping, error) {
	data, err := pages.Map(size)
	if err != nil {
		return Mapping{}, fmt.Errorf("cannot get %d bytes of memory: %w", size, err)
	}
	pages.AdviseHuge(data)
	return Mapping{data}, nil
}
