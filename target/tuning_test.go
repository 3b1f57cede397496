package target

import "testing"

func TestPartsOf(t *testing.T) {
	gpu := tuningGPU()
	for n, want := range map[int]int{1: 1, 127: 127, 128: 128, 131: 1, 300: 100, 50257: 29, 128256: 128} {
		if got := gpu.PartsOf(n); got != want {
			t.Errorf("%d values in %d parts, want %d", n, got, want)
		}
	}
	cpu := tuningCPU()
	if got := cpu.PartsOf(128); got != 1 {
		t.Errorf("a CPU sums in %d parts, want 1", got)
	}
}

func TestRoundUp(t *testing.T) {
	gpu, cpu := tuningGPU(), tuningCPU()
	for _, c := range [][3]int64{{1, 1000, 64}, {64, 1000, 64}, {65, 1000, 128}, {961, 1000, 1000}, {1000, 1000, 1000}, {5, 7, 7}} {
		if got := gpu.RoundUp(c[0], c[1]); got != c[2] {
			t.Errorf("%d is rounded up to %d, want %d (most %d)", c[0], got, c[2], c[1])
		}
		if got := cpu.RoundUp(c[0], c[1]); got != c[0] {
			t.Errorf("a CPU rounds %d up to %d", c[0], got)
		}
	}
}

func TestRowsFor(t *testing.T) {
	sm87, err := ForGPU(87, false)
	if err != nil {
		t.Fatal(err)
	}
	sm90, err := ForGPU(90, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ position, rows, clusters, none int }{
		{0, 64, 64, 64}, {0, 511, 511, 511}, {255, 512, 256, 256}, {256, 512, 512, 512}, {256, 1024, 512, 1024}, {512, 1024, 1024, 1024},
		{511, 4096, 512, 4096}, {512, 4096, 1024, 4096}, {1023, 2048, 1024, 2048}, {1023, 2047, 2047, 2047}, {1024, 4096, 4096, 4096},
	} {
		if got := sm90.Tuning.RowsFor(c.position, c.rows); got != c.clusters {
			t.Errorf("position %d of %d: a step over %d rows, want %d", c.position, c.rows, got, c.clusters)
		}
		if got := sm87.Tuning.RowsFor(c.position, c.rows); got != c.none {
			t.Errorf("position %d of %d, without clusters: a step over %d rows, want %d", c.position, c.rows, got, c.none)
		}
	}
	if cpu := tuningCPU(); cpu.RowsFor(0, 4096) != 4096 {
		t.Errorf("a CPU's step is over %d rows of 4096", cpu.RowsFor(0, 4096))
	}
}

func TestTileRows(t *testing.T) {
	gpu, cpu := tuningGPU(), tuningCPU()
	for _, c := range []struct {
		of                 *Tuning
		rows, groups, want int
		bytes              bool
	}{
		{&gpu, 127, 64, 0, true}, {&gpu, 128, 64, 8, true}, {&gpu, 256, 64, 8, true}, {&gpu, 257, 64, 16, true},
		{&gpu, 95, 64, 0, false}, {&gpu, 96, 64, 8, false}, {&gpu, 60, 40, 8, false}, {&gpu, 59, 40, 0, false},
		{&gpu, 4032, 64, 32, true}, {&gpu, 4096, 64, 64, true}, {&gpu, 4096, 128, 32, false}, {&gpu, 4096, 8, 64, true}, {&gpu, 2, 1, 8, true}, {&gpu, 1, 1, 0, false},
		{&cpu, 255, 64, 0, true}, {&cpu, 256, 64, 8, true}, {&cpu, 255, 64, 0, false}, {&cpu, 256, 64, 8, false},
		{&Tuning{}, 1000, 2, 0, true},
	} {
		if got := c.of.TileRows(c.rows, c.groups, c.bytes); got != c.want {
			t.Errorf("%d rows in %d groups, bytes %t: tiles of %d rows, want %d", c.rows, c.groups, c.bytes, got, c.want)
		}
	}
}

func TestGraphRuns(t *testing.T) {
	gpu, cpu := tuningGPU(), tuningCPU()
	for launches, want := range map[int]int{1: 1, 127: 1, 128: 4, 500: 4} {
		if got := gpu.GraphRuns(launches); got != want {
			t.Errorf("a graph of %d launches holds %d runs, want %d", launches, got, want)
		}
	}
	if got := cpu.GraphRuns(500); got != 1 {
		t.Errorf("a CPU's graph holds %d runs", got)
	}
}
