package cpucache

import (
	"testing"
	"testing/fstest"
)

// folder is sysfs with caches of "level type size sharers".
func folder(caches ...[4]string) fstest.MapFS {
	out := fstest.MapFS{}
	for i, c := range caches {
		at := "index" + string(rune('0'+i)) + "/"
		for k, name := range []string{"level", "type", "size", "shared_cpu_list"} {
			out[at+name] = &fstest.MapFile{Data: []byte(c[k] + "\n")}
		}
	}
	return out
}

func TestRead(t *testing.T) {
	instructions := [4]string{"1", "Instruction", "32K", "0"}
	tests := []struct {
		name   string
		folder fstest.MapFS
		want   Sizes
	}{
		{"a server's core", folder([4]string{"1", "Data", "48K", "0"}, instructions, [4]string{"2", "Unified", "2048K", "0"}, [4]string{"3", "Unified", "307200K", "0-15"}), Sizes{48 << 10, 2 << 20, 19200 << 10}},
		{"two threads a core", folder([4]string{"1", "Data", "32K", "0,8"}, [4]string{"2", "Unified", "1M", "0,8"}), Sizes{32 << 10, 1 << 20, 0}},
		{"four cores a second cache", folder([4]string{"1", "Data", "32K", "0"}, [4]string{"2", "Unified", "4096K", "0-3"}), Sizes{32 << 10, 1 << 20, 0}},
		{"no second cache", folder([4]string{"1", "Data", "64K", "0"}), Sizes{64 << 10, 0, 0}},
		{"no sizes", folder([4]string{"1", "Data", "", ""}, [4]string{"2", "Unified", "-4K", "x"}), Sizes{}},
		{"nothing", fstest.MapFS{}, Sizes{}},
	}
	for _, tt := range tests {
		if got := read(tt.folder); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
