//go:build linux && (amd64 || arm64)

package native

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"

	"tgc/internal/sharedlibrary"
)

// Signal handlers belong to the process, and a handler can reach nothing but
// globals: the worker blocks of all pools lie in one table that is never
// freed, and the handlers that were there before in another.
var (
	//lint:ignore U1000 read by the signal handler in loop_*.s
	blocksAddr  uintptr     // first workerBlock
	blocksUsed  uintptr     // blocks ever used: how far the handler looks
	oldHandlers [64]uintptr // by signal

	guard struct {
		once sync.Once
		err  error

		mu    sync.Mutex
		table []workerBlock // maxBlocks of them, outside the Go heap
		free  []*workerBlock
	}
)

// maxBlocks bounds the workers of all pools of the process.
const maxBlocks = 4096

// guardedSignals are what instructions raise.
var guardedSignals = []unix.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP}

// workerSignalMask blocks all signals in worker threads but the guarded ones
// and the two that the C library uses between its threads (32 and 33):
// Go's handlers have no business on a thread that never returns to Go.
const workerSignalMask = ^uint64(1<<(unix.SIGSEGV-1) | 1<<(unix.SIGBUS-1) | 1<<(unix.SIGFPE-1) | 1<<(unix.SIGILL-1) | 1<<(unix.SIGTRAP-1) | 1<<(32-1) | 1<<(33-1))

// installGuard installs tgc_native_handler before Go's handlers, once.
func installGuard() error {
	guard.once.Do(func() {
		memory, err := Alloc(maxBlocks * int64(unsafe.Sizeof(workerBlock{})))
		if err != nil {
			guard.err = err
			return
		}
		guard.table = unsafe.Slice((*workerBlock)(unsafe.Pointer(unsafe.SliceData(memory.Bytes()))), maxBlocks)
		blocksAddr = memory.Addr()
		for _, signal := range guardedSignals {
			if guard.err = guardSignal(signal); guard.err != nil {
				return
			}
		}
	})
	return guard.err
}

// sigaction is struct sigaction of the C libraries on linux/amd64.
type sigaction struct {
	handler  uintptr
	mask     [16]uint64
	flags    int32
	_        int32
	restorer uintptr
}

// guardSignal replaces the handler of one signal and keeps its mask and flags
// (Go's: SA_SIGINFO, SA_ONSTACK, SA_RESTART, all signals blocked).
func guardSignal(signal unix.Signal) error {
	set, err := cFunction("sigaction")
	if err != nil {
		return err
	}
	action := new(sigaction)
	if r, _, _ := purego.SyscallN(set, uintptr(signal), 0, uintptr(unsafe.Pointer(action))); int32(r) != 0 {
		return fmt.Errorf("native: sigaction(%v) failed", signal)
	}
	const defaultOrIgnore = 1 // SIG_DFL is 0, SIG_IGN 1
	if action.handler <= defaultOrIgnore {
		return fmt.Errorf("native: %v has no handler, want Go's", signal)
	}
	oldHandlers[signal] = action.handler
	action.handler = handlerEntry
	if r, _, _ := purego.SyscallN(set, uintptr(signal), uintptr(unsafe.Pointer(action)), 0); int32(r) != 0 {
		return fmt.Errorf("native: sigaction(%v) failed", signal)
	}
	return nil
}

// takeBlocks reserves worker blocks.
func takeBlocks(n int) ([]*workerBlock, error) {
	guard.mu.Lock()
	defer guard.mu.Unlock()
	if fresh := maxBlocks - int(blocksUsed); n > len(guard.free)+fresh {
		return nil, fmt.Errorf("%d more workers in this process, want at most %d", n, len(guard.free)+fresh)
	}
	taken := make([]*workerBlock, 0, n)
	for range n {
		if last := len(guard.free) - 1; last >= 0 {
			taken = append(taken, guard.free[last])
			guard.free = guard.free[:last]
			continue
		}
		taken = append(taken, &guard.table[blocksUsed])
		blocksUsed++
	}
	return taken, nil
}

// releaseBlocks gives blocks back. Their threads have ended.
func releaseBlocks(blocks []*workerBlock) {
	guard.mu.Lock()
	defer guard.mu.Unlock()
	for _, b := range blocks {
		*b = workerBlock{}
	}
	guard.free = append(guard.free, blocks...)
}

// startThread starts a thread in C function entry.
func startThread(entry, arg uintptr) (thread uintptr, err error) {
	create, err := cFunction("pthread_create")
	if err != nil {
		return 0, err
	}
	handle := new(uintptr)
	r, _, _ := purego.SyscallN(create, uintptr(unsafe.Pointer(handle)), 0, entry, arg)
	if errno := unix.Errno(uint32(r)); errno != 0 {
		return 0, fmt.Errorf("pthread_create: %w", errno)
	}
	return *handle, nil
}

// joinThread waits for the end of a thread.
func joinThread(thread uintptr) error {
	join, err := cFunction("pthread_join")
	if err != nil {
		return err
	}
	r, _, _ := purego.SyscallN(join, thread, 0)
	if errno := unix.Errno(uint32(r)); errno != 0 {
		return fmt.Errorf("pthread_join: %w", errno)
	}
	return nil
}

// cFunction finds a function of the C library, which every purego program
// has loaded (older glibc keeps threads in a library of their own).
func cFunction(name string) (uintptr, error) {
	addr, err := sharedlibrary.FindLoaded(name)
	if err == nil {
		return addr, nil
	}
	for _, lib := range []string{"libc.so.6", "libpthread.so.0"} {
		handle, err := sharedlibrary.Open(lib, sharedlibrary.Global)
		if err != nil {
			continue
		}
		if addr, err := sharedlibrary.Find(handle, name); err == nil {
			return addr, nil
		}
	}
	return 0, fmt.Errorf("native: no %s in the C library: %w", name, err)
}
