package schedule_test

import (
	"testing"

	"tgc/schedule"
)

// Temporaries that live at the same time never overlap, are aligned, and leave
// room behind them for gated vector loads.
func TestMemoryPlan(t *testing.T) {
	for _, row := range zoo {
		for _, opt := range []schedule.Options{schedule.DefaultOptions(), schedule.CPUOptions(), plainOptions()} {
			m := llamaTiny()
			row.edit(&m)
			m.layers = 3
			checkMemory(t, modelRig(t, m, row.position).plan(opt))
		}
	}
}

func checkMemory(t *testing.T, s *schedule.Schedule) {
	t.Helper()
	first, last := make(map[int]int), make(map[int]int)
	for i, l := range s.Launches {
		for _, k := range l.Kernels {
			for _, b := range k.Args {
				if _, ok := first[b]; !ok {
					first[b] = i
				}
				last[b] = i
			}
		}
	}
	for i, x := range s.Buffers {
		if x.UserID >= 0 {
			continue
		}
		if x.Offset%64 != 0 || x.Offset+x.Bytes+64 > s.ArenaBytes {
			t.Errorf("buffer %d at %d with %d bytes does not fit an arena of %d", i, x.Offset, x.Bytes, s.ArenaBytes)
		}
		for j, y := range s.Buffers[:i] {
			if y.UserID < 0 && first[i] <= last[j] && first[j] <= last[i] && x.Offset < y.Offset+y.Bytes+64 && y.Offset < x.Offset+x.Bytes+64 {
				t.Errorf("buffers %d and %d overlap in memory and in time", i, j)
			}
		}
	}
}
