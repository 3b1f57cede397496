package gguf

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"tgc/internal/atomicfile"
	"tgc/internal/mapfile"
)

// Progress is told how many bytes of how many are done. Calls do not overlap.
type Progress func(done, total int64)

// Bytes returns the file in one slice.
func (w *Writer) Bytes(ctx context.Context) ([]byte, error) {
	head, err := w.head()
	if err != nil {
		return nil, err
	}
	data := make([]byte, int64(len(head))+w.dataBytes())
	if err := w.fillMemory(ctx, head, data, nil); err != nil {
		return nil, err
	}
	return data, nil
}

// Memory makes the file in memory outside the Go heap and opens it. Closing the
// File gives the memory back. name is what errors call the file.
func (w *Writer) Memory(ctx context.Context, name string, progress Progress) (*File, error) {
	head, err := w.head()
	if err != nil {
		return nil, err
	}
	m, err := mapfile.Memory(len(head) + int(w.dataBytes()))
	if err != nil {
		return nil, &Error{File: name, Offset: -1, Err: err}
	}
	if err := w.fillMemory(ctx, head, m.Bytes, progress); err != nil {
		return nil, errors.Join(err, m.Unmap())
	}
	f, err := OpenBytes(name, m.Bytes)
	if err != nil {
		return nil, errors.Join(err, m.Unmap())
	}
	f.mappings = []mapfile.Mapping{m}
	return f, nil
}

// fillMemory sets data, which is zero, to the whole file.
func (w *Writer) fillMemory(ctx context.Context, head, data []byte, progress Progress) error {
	copy(data, head)
	body := data[len(head):]
	return w.fillAll(ctx, progress, func() fillChunk {
		return func(t *pendingTensor, offset int64, size int) error {
			if t.fill == nil {
				return nil
			}
			at := t.Offset + offset
			return t.fill(body[at:at+int64(size):at+int64(size)], offset)
		}
	})
}

// WriteFile writes the file under a temporary name in the same folder and
// renames it at the end, so that path never holds half a model. An existing
// regular file is replaced.
func (w *Writer) WriteFile(ctx context.Context, path string, progress Progress) (err error) {
	head, err := w.head()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && ctx.Err() == nil {
			err = &Error{File: path, Offset: -1, Err: err}
		}
	}()
	file, err := atomicfile.CreateSized(path, int64(len(head))+w.dataBytes())
	if err != nil {
		return err
	}
	defer file.Abort()
	if err := w.fillFile(ctx, head, file, progress); err != nil {
		return err
	}
	return file.Commit()
}

// fillFile writes the whole file through one buffer per worker.
func (w *Writer) fillFile(ctx context.Context, head []byte, file *atomicfile.File, progress Progress) error {
	if _, err := file.WriteAt(head, 0); err != nil {
		return err
	}
	return w.fillAll(ctx, progress, func() fillChunk {
		var buffer []byte
		return func(t *pendingTensor, offset int64, size int) error {
			if t.fill == nil {
				return nil
			}
			if cap(buffer) < size {
				buffer = make([]byte, size)
			}
			chunk := buffer[:size]
			if err := t.fill(chunk, offset); err != nil {
				return err
			}
			_, err := file.WriteAt(chunk, int64(len(head))+t.Offset+offset)
			return err
		}
	})
}

// fillChunk produces and stores size bytes of a tensor from offset on.
type fillChunk func(t *pendingTensor, offset int64, size int) error

// fillAll runs the chunks of all tensors on as many workers as there are
// processors, until done, the first error, or the end of the context. Each
// worker gets its own fillChunk.
func (w *Writer) fillAll(ctx context.Context, progress Progress, worker func() fillChunk) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := w.chunks(progress)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			fill := worker()
			for ctx.Err() == nil {
				t, offset, size := queue.next()
				if t == nil {
					return
				}
				// What fills a tensor may be read from a file that is mapped.
				if err := mapfile.Guard(func() error { return fill(t, offset, size) }); err != nil {
					cancel(fmt.Errorf("tensor %s: %w", Quote(t.Name), err))
					return
				}
				queue.done(size)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// chunkQueue hands out chunks in file order.
type chunkQueue struct {
	mu       sync.Mutex
	tensors  []pendingTensor
	offset   int64 // into tensors[0]
	finished int64 // bytes
	total    int64
	progress Progress
}

func (w *Writer) chunks(progress Progress) *chunkQueue {
	q := &chunkQueue{tensors: w.tensors, progress: progress}
	for i := range w.tensors {
		q.total += int64(w.tensors[i].size)
	}
	return q
}

// next returns a chunk that no other worker has; nil when there are no more.
func (q *chunkQueue) next() (t *pendingTensor, offset int64, size int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.tensors) == 0 {
		return nil, 0, 0
	}
	t, offset = &q.tensors[0], q.offset
	size = int(min(int64(ChunkBytes(t.Type)), int64(t.size)-offset))
	q.offset += int64(size)
	if q.offset == int64(t.size) {
		q.tensors, q.offset = q.tensors[1:], 0
	}
	return t, offset, size
}

// done reports a finished chunk.
func (q *chunkQueue) done(size int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.finished += int64(size)
	if q.progress != nil {
		q.progress(q.finished, q.total)
	}
}
