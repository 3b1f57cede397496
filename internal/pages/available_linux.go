package pages

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// Available is how many bytes of memory programs may still take, pages of files that the system
// would drop among them: as the kernel estimates it, and no more than the limit of the group of
// processes. ok is false where that is unknown.
func Available() (bytes int64, ok bool) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kib int64
		if n, _ := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &kib); n == 1 {
			return min(kib<<10, groupLimit()), true
		}
	}
	return 0, false
}

// groupLimit is the memory that the group of processes may have.
func groupLimit() int64 {
	raw, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	if err != nil {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil { // "max"
		return math.MaxInt64
	}
	return n
}
