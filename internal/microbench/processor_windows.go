package microbench

import "golang.org/x/sys/windows"

// processorSeconds is what all threads of the process have computed so far.
func processorSeconds() float64 {
	var started, ended, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &started, &ended, &kernel, &user); err != nil {
		return 0
	}
	return (ticks(kernel) + ticks(user)) * 1e-7
}

// ticks is a duration in units of 100 ns.
func ticks(t windows.Filetime) float64 {
	return float64(uint64(t.HighDateTime)<<32 | uint64(t.LowDateTime))
}
