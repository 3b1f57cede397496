package native

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// FaultError is a kernel that raised a signal. The step it belongs to did
// not complete; its outputs are undefined. The pool stays usable.
type FaultError struct {
	Signal  unix.Signal // SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGTRAP
	Code    int         // si_code: what kind of fault
	Address uintptr     // that was accessed (SIGSEGV, SIGBUS)
	PC      uintptr     // of the instruction
	Entry   uintptr     // of the kernel
	Kernel  string      // Call.Name
	Call    int         // number of the call in the step
	Worker  int
}

// farFromEntry is the distance in bytes from which a program counter is
// taken to be outside the kernel: in memset, say.
const farFromEntry = 1 << 20

func (e *FaultError) Error() string {
	what := unix.SignalName(e.Signal)
	if e.Signal == unix.SIGSEGV || e.Signal == unix.SIGBUS {
		what += fmt.Sprintf(" at address %#x", e.Address)
	}
	where := fmt.Sprintf("pc %#x outside the kernel", e.PC)
	if offset := e.PC - e.Entry; offset < farFromEntry {
		where = fmt.Sprintf("pc +%#x", offset)
	}
	return fmt.Sprintf("native: kernel %q (call %d, worker %d): %s, %s", e.Kernel, e.Call, e.Worker, what, where)
}

// FaultedKernel is the kernel at fault.
func (e *FaultError) FaultedKernel() string { return e.Kernel }
