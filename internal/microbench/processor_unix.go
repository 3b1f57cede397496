//go:build unix

package microbench

import "golang.org/x/sys/unix"

// processorSeconds is what all threads of the process have computed so far.
func processorSeconds() float64 {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}
