package cpu

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// askForTiles asks the system to let this process use tile registers (AMX), whose 8 KiB it
// saves for a thread only once it has used them. Linux grants it for good, to all threads and
// those to come, unless the stack of a signal handler is too small for them: Go's have 32 KiB,
// those of workers 64. Without the grant the first such instruction is a fault.
var askForTiles = sync.OnceValue(func() error {
	const (
		requestPermission = 0x1023 // ARCH_REQ_XCOMP_PERM
		tileData          = 18     // the number of the state
	)
	if _, _, errno := unix.Syscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0); errno != 0 {
		return fmt.Errorf("cpu: use of tile registers: %w", errno)
	}
	return nil
})
