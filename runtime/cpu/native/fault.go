package native

import (
	"cmp"
	"fmt"
	"syscall"
)

// signalNames are what instructions raise.
var signalNames = map[syscall.Signal]string{
	syscall.SIGSEGV: "SIGSEGV", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
	syscall.SIGILL: "SIGILL", syscall.SIGTRAP: "SIGTRAP",
}

// FaultError is a kernel that raised a signal. The step it belongs to did
// not complete; its outputs are undefined. The pool stays usable.
type FaultError struct {
	Signal  syscall.Signal // SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGTRAP
	Code    int            // si_code: what kind of fault
	Address uintptr        // that was accessed (SIGSEGV, SIGBUS)
	PC      uintptr        // of the instruction
	Entry   uintptr        // of the kernel
	Kernel  string         // Call.Name
	Call    int            // number of the call in the step
	Worker  int
}

// farFromEntry is the distance in bytes from which a program counter is
// taken to be outside the kernel: in memset, say.
const farFromEntry = 1 << 20

func (e *FaultError) Error() string {
	what := cmp.Or(signalNames[e.Signal], e.Signal.String())
	if e.Signal == syscall.SIGSEGV || e.Signal == syscall.SIGBUS {
		what += fmt.Sprintf(" at address %#x", e.Address)
	}
	if e.Signal == syscall.SIGBUS {
		what += " (a file with weights is shorter than when it was opened?)"
	}
	where := fmt.Sprintf("pc %#x outside the kernel", e.PC)
	if offset := e.PC - e.Entry; offset < farFromEntry {
		where = fmt.Sprintf("pc +%#x", offset)
	}
	return fmt.Sprintf("native: kernel %q (call %d, worker %d): %s, %s", e.Kernel, e.Call, e.Worker, what, where)
}

// FaultedKernel is the kernel at fault.
func (e *FaultError) FaultedKernel() string { return e.Kernel }
