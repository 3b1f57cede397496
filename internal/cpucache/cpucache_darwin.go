package cpucache

import "golang.org/x/sys/unix"

// ofCore asks for the fast cores, which compute: they are the first of the levels of performance.
// A second cache is shared by the cores of a cluster.
func ofCore() Sizes {
	value := func(name string) int {
		n, err := unix.SysctlUint32(name)
		if err != nil || n > 1<<30 {
			return 0 // unknown
		}
		return int(n)
	}
	return Sizes{
		L1: value("hw.perflevel0.l1dcachesize"),
		L2: value("hw.perflevel0.l2cachesize") / max(value("hw.perflevel0.cpusperl2"), 1),
	}
}
