package cpucache

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

func ofCore() Sizes { return read(os.DirFS("/sys/devices/system/cpu/cpu0/cache")) }

// read takes the sizes from a folder of sysfs: one folder a cache, with its level, type, size
// and the processors that share it. The processors of the first cache are the threads of one core.
func read(folder fs.FS) Sizes {
	caches, err := fs.Glob(folder, "index*")
	if err != nil {
		return Sizes{}
	}
	bytes, sharers := make(map[string]int), make(map[string]int)
	for _, cache := range caches {
		text := func(name string) string {
			raw, _ := fs.ReadFile(folder, path.Join(cache, name)) // what is missing is unknown
			return strings.TrimSpace(string(raw))
		}
		if kind := text("type"); kind != "Data" && kind != "Unified" {
			continue
		}
		level := text("level")
		bytes[level], sharers[level] = parseSize(text("size")), countProcessors(text("shared_cpu_list"))
	}
	share := func(level string) int {
		if threads, all := sharers["1"], sharers[level]; threads > 0 && all > threads {
			return bytes[level] / all * threads
		}
		return bytes[level]
	}
	return Sizes{L1: bytes["1"], L2: share("2"), L3: share("3")}
}

// parseSize reads "48K" or "2M"; 0 where it is neither.
func parseSize(s string) int {
	shift := 0
	switch {
	case strings.HasSuffix(s, "K"):
		shift = 10
	case strings.HasSuffix(s, "M"):
		shift = 20
	}
	n, err := strconv.Atoi(strings.TrimRight(s, "KM"))
	if err != nil || n < 0 || n > 1<<20 {
		return 0
	}
	return n << shift
}

// countProcessors counts a list such as "0-3,8"; 0 where it is none.
func countProcessors(list string) (n int) {
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && isRange {
			to, err = strconv.Atoi(last)
		}
		if err != nil || to < from {
			return 0
		}
		n += to - from + 1
	}
	return n
}
