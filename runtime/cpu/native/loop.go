//go:build linux && (amd64 || arm64)

package native

import (
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// Entry addresses of the C functions of loop_*.s.
var stepEntry, workerEntry, handlerEntry uintptr

// readTicks reads the time stamp counter.
func readTicks() uint64

// altStackSize holds a signal frame with all vector state (11 KiB with AMX)
// and whatever a chained handler needs.
const altStackSize = 64 << 10

// loop is the Go side of the worker loop in loop_*.s.
type loop struct {
	memory  *Memory // control, then alternate signal stacks
	control *control
	blocks  []*workerBlock
	threads []uintptr // pthread_t of workers 1 and up
	// args is the argument list of the native call, kept so that a call
	// allocates nothing.
	args  []uintptr
	epoch uint32 // of the prepared step

	// Two readings of one moment, to measure the counter's rate.
	startTicks uint64
	startTime  time.Time
}

// calibration is how long the counter is compared with the clock at the
// start. 1 ms gives 1 %, enough for the spin time; times of calls use all
// the time since.
const calibration = time.Millisecond

func startLoop(workers int, spin time.Duration) (*loop, error) {
	if err := installGuard(); err != nil {
		return nil, err
	}
	memory, err := Alloc(int64(unsafe.Sizeof(control{})) + int64(workers)*altStackSize)
	if err != nil {
		return nil, err
	}
	l := &loop{
		memory:     memory,
		control:    (*control)(unsafe.Pointer(unsafe.SliceData(memory.Bytes()))),
		startTicks: readTicks(),
		startTime:  time.Now(),
	}
	time.Sleep(calibration)
	l.control.spinTicks = uint64(float64(spin.Nanoseconds()) * l.ticksPerNanosecond())
	if l.blocks, err = takeBlocks(workers); err != nil {
		_ = memory.Free() // the first error is the one to report
		return nil, err
	}
	stacks := memory.Addr() + unsafe.Sizeof(control{})
	for i, b := range l.blocks {
		*b = workerBlock{
			control:    memory.Addr(),
			index:      uint64(i),
			count:      uint64(workers),
			altStack:   stacks + uintptr(i)*altStackSize,
			altSize:    altStackSize,
			signalMask: workerSignalMask,
		}
	}
	l.args = []uintptr{uintptr(unsafe.Pointer(l.blocks[0]))}
	for _, b := range l.blocks[1:] {
		thread, err := startThread(workerEntry, uintptr(unsafe.Pointer(b)))
		if err != nil {
			_ = l.stop() // ends the threads that did start
			return nil, err
		}
		l.threads = append(l.threads, thread)
	}
	return l, nil
}

// ticksPerNanosecond is the counter's rate measured since the start.
func (l *loop) ticksPerNanosecond() float64 {
	return float64(readTicks()-l.startTicks) / float64(time.Since(l.startTime).Nanoseconds())
}

// prepare sets what the next play runs.
func (l *loop) prepare(s *Step, profile bool) {
	c := l.control
	s.deal(int64(len(l.blocks)))
	c.calls = s.callsAddr()
	c.end = c.calls + uintptr(len(s.records))*unsafe.Sizeof(callRecord{})
	c.profile = 0
	if profile {
		c.profile = flagBarrier
	}
	// The last step's number stops nothing any more. (Zero would stop step
	// 2^32.)
	atomic.StoreUint32(&c.cancelled, c.epoch)
	atomic.StoreUint32(&c.faulted, c.epoch)
	l.epoch = c.epoch + 1
}

// play runs the prepared step; s is only named to keep it from being freed.
func (l *loop) play(*Step) { purego.SyscallN(stepEntry, l.args...) }

// cancel stops the prepared step, also if play has not begun yet.
func (l *loop) cancel() { atomic.StoreUint32(&l.control.cancelled, l.epoch) }

func (l *loop) wasCancelled() bool {
	return atomic.LoadUint32(&l.control.cancelled) == l.epoch
}

// times converts the time stamps of a profiled step.
func (l *loop) times(s *Step) []time.Duration {
	rate := l.ticksPerNanosecond()
	took := make([]time.Duration, len(s.records))
	before := l.control.started
	for i := range s.records {
		tick := s.records[i].tick
		took[i] = time.Duration(float64(tick-before) / rate)
		before = tick
	}
	return took
}

// fault is the first worker's fault of the last step, if there was one.
func (l *loop) fault(s *Step) error {
	if atomic.LoadUint32(&l.control.faulted) != l.epoch {
		return nil
	}
	var first *FaultError
	for i, b := range l.blocks {
		if b.faultSignal == 0 {
			continue
		}
		if call := s.callAt(b.call); first == nil {
			first = &FaultError{
				Signal: unix.Signal(b.faultSignal), Code: int(b.faultCode),
				Address: b.faultAddr, PC: b.faultPC,
				Entry: s.records[call].fn, Kernel: s.names[call], Call: call, Worker: i,
			}
		}
		b.faultSignal = 0
	}
	if first == nil {
		return fmt.Errorf("native: step stopped by a fault that no worker recorded")
	}
	return first
}

// stop ends the threads, waits for them, and releases everything.
func (l *loop) stop() error {
	c := l.control
	atomic.StoreUint32(&c.shutdown, 1)
	atomic.AddUint32(&c.epoch, 1)
	const futexWakePrivate, all = 129, 1<<31 - 1
	if _, _, errno := unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&c.epoch)), futexWakePrivate, all); errno != 0 {
		return fmt.Errorf("native: wake the workers: %w", errno)
	}
	for _, thread := range l.threads {
		if err := joinThread(thread); err != nil {
			return err // the thread may live: keep its memory
		}
	}
	releaseBlocks(l.blocks)
	return l.memory.Free()
}
