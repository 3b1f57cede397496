package processor

import (
	"os"
	"strconv"
	"strings"
)

func identify() identity {
	text, _ := os.ReadFile("/proc/cpuinfo") // what is missing is unknown
	return parse(string(text))
}

// parse reads the first processor of /proc/cpuinfo: lines of a key, a colon and a value, numbers in decimal.
func parse(text string) (id identity) {
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			return -1
		}
		return n
	}
	first, _, _ := strings.Cut(text, "\n\n")
	for line := range strings.SplitSeq(first, "\n") {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "vendor_id":
			id.vendor = value
		case "cpu family":
			id.family = number(value)
		case "model":
			id.model = number(value)
		}
	}
	return id
}
