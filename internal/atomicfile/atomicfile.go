// Package atomicfile writes files that appear under their name only when they
// are complete: a temporary file beside the target, then a rename.
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file being written. Exactly one of Commit and Abort ends it; Abort
// after Commit does nothing, so it can be deferred.
type File struct {
	*bufio.Writer
	path string
	file *os.File
	// direct: the target is no regular file (a device, a pipe), which a rename
	// would replace; it is written as it comes.
	direct bool
	done   bool
}

// bufferSize is large enough that writing is not the cost, in bytes.
const bufferSize = 1 << 18

// Create starts a file. The folder must exist.
func Create(path string) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, &fs.PathError{Op: "create", Path: path, Err: errors.New("is a folder")}
	case err == nil && !info.Mode().IsRegular():
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return &File{Writer: bufio.NewWriterSize(file, bufferSize), path: path, file: file, direct: true}, nil
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+shortBase(path)+".*.tmp")
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, cause(err))
	}
	return &File{Writer: bufio.NewWriterSize(file, bufferSize), path: path, file: file}, nil
}

// CreateSized starts a file of size zero bytes that is filled by WriteAt, in any
// order and from several goroutines. The target must not be a device or a pipe.
func CreateSized(path string, size int64) (*File, error) {
	f, err := Create(path)
	if err != nil {
		return nil, err
	}
	if f.direct {
		f.Abort()
		return nil, &fs.PathError{Op: "create", Path: path, Err: errors.New("is not a regular file")}
	}
	if err := f.file.Truncate(size); err != nil {
		f.Abort()
		return nil, fmt.Errorf("write %s: %w", path, cause(err))
	}
	return f, nil
}

// WriteAt writes at a place of a file made by CreateSized.
func (f *File) WriteAt(data []byte, offset int64) (int, error) {
	n, err := f.file.WriteAt(data, offset)
	if err != nil {
		err = fmt.Errorf("write %s: %w", f.path, cause(err))
	}
	return n, err
}

// shortBase is the target's name, cut so that the temporary name is no longer
// than a file system allows.
func shortBase(path string) string {
	base := filepath.Base(path)
	return base[:min(len(base), 64)]
}

// cause takes the temporary file's name out of an error: the user asked for
// another one.
func cause(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// Commit gives the file its name. On an error nothing is left behind.
func (f *File) Commit() error {
	if f.done {
		return nil
	}
	if err := f.Flush(); err != nil {
		f.Abort()
		return fmt.Errorf("write %s: %w", f.path, cause(err))
	}
	f.done = true
	if f.direct {
		return f.file.Close()
	}
	if err := f.rename(); err != nil {
		_ = os.Remove(f.file.Name()) // the first error is the one to report
		return fmt.Errorf("write %s: %w", f.path, cause(err))
	}
	return nil
}

func (f *File) rename() error {
	if err := f.file.Chmod(0o644); err != nil {
		_ = f.file.Close()
		return err
	}
	if err := f.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.file.Name(), f.path); err != nil {
		var linkError *os.LinkError
		if errors.As(err, &linkError) {
			return linkError.Err
		}
		return err
	}
	return nil
}

// Abort throws away what was written.
func (f *File) Abort() {
	if f.done {
		return
	}
	f.done = true
	_ = f.file.Close()
	if !f.direct {
		_ = os.Remove(f.file.Name()) // best effort: nothing more can be done
	}
}

// Write writes a whole file.
func Write(path string, data []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", path, cause(err))
	}
	return f.Commit()
}
