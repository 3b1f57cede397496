package testkit

import (
	"fmt"
	"os"
	"runtime"
	"testing"
)

// MemoryInUse is the live heap and, on Linux, the resident set, in bytes.
func MemoryInUse(t testing.TB) (heap, resident int64) {
	t.Helper()
	runtime.GC()
	runtime.GC() // what finalizers held
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if raw, err := os.ReadFile("/proc/self/statm"); err == nil {
		var total, pages int64
		if _, err := fmt.Sscan(string(raw), &total, &pages); err != nil {
			t.Fatal(err)
		}
		resident = pages * int64(os.Getpagesize())
	}
	return int64(stats.HeapAlloc), resident
}
