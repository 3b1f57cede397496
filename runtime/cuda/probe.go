package cuda

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"tgc/runtime/cuda/driver"
)

//go:embed probe.ptx
var probeText string

const (
	probeThreads = 512
	// probeBlocks is the blocks per multiprocessor: 2,048 threads, all that one
	// holds (1,024 on some; the rest then waits its turn).
	probeBlocks = 4
	probeRuns   = 7
	// readBytes is the least that a run reads: many times any L2 cache.
	readBytes = 2 << 30
	// readWord is what a thread reads in a round.
	readWord = 4 * 16
	// fmaRounds of 64 multiply-adds a thread are some milliseconds.
	fmaRounds    = 4096
	fmasPerRound = 64
)

// MeasureRead is the bandwidth of reads from device memory in GB/s: the median
// of several runs over a buffer far larger than the caches.
func (d *Device) MeasureRead(ctx context.Context) (float64, error) {
	free, err := d.freeMemory()
	if err != nil {
		return 0, err
	}
	perRound := int64(d.info.Multiprocessors) * probeBlocks * probeThreads * readWord
	rounds := max(min(readBytes, free/2)/perRound, 1)
	m, err := d.reserve(rounds * perRound)
	if err != nil {
		return 0, err
	}
	defer m.Free()
	if err := d.zero(m, 0, d.arena.Footprint(m.Bytes)); err != nil {
		return 0, fmt.Errorf("cuda: %w", err)
	}
	elapsed, err := d.probe(ctx, "probe_read", []uint64{uint64(m.Base), uint64(rounds), uint64(m.Base)})
	if err != nil {
		return 0, err
	}
	return float64(rounds*perRound) / float64(elapsed.Nanoseconds()), nil
}

// MeasureFMA is the peak of f32 multiply-adds in GFLOP/s, two operations each.
func (d *Device) MeasureFMA(ctx context.Context) (float64, error) {
	m, err := d.reserve(4)
	if err != nil {
		return 0, err
	}
	defer m.Free()
	elapsed, err := d.probe(ctx, "probe_fma", []uint64{fmaRounds, uint64(m.Base)})
	if err != nil {
		return 0, err
	}
	threads := int64(d.info.Multiprocessors) * probeBlocks * probeThreads
	return float64(threads*fmaRounds*fmasPerRound*2) / float64(elapsed.Nanoseconds()), nil
}

func (d *Device) freeMemory() (int64, error) {
	var free uint64
	err := d.with(func() error {
		var err error
		free, _, err = d.drv.MemInfo()
		return err
	})
	return int64(free), err
}

// probe times a probe kernel: the median of several runs after a warm-up.
func (d *Device) probe(ctx context.Context, entry string, params []uint64) (time.Duration, error) {
	r := &Rendered{Text: probeText, Entry: entry, Blocks: int64(d.info.Multiprocessors) * probeBlocks, Block: [3]int{probeThreads, 1, 1}}
	c, err := d.compile(ctx, r)
	if err != nil {
		return 0, fmt.Errorf("cuda: %s: %w", entry, err)
	}
	k, err := kernelOf(r, c.function)
	if err != nil {
		return 0, err
	}
	k.Params = params
	var times []time.Duration
	err = d.with(func() error {
		var err error
		times, err = d.timeRuns(ctx, &k)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cuda: %s: %w", entry, err)
	}
	slices.Sort(times)
	return max(times[len(times)/2], 1), nil
}

func (d *Device) timeRuns(ctx context.Context, k *driver.Kernel) (times []time.Duration, err error) {
	var marks [2]driver.Event
	for i := range marks {
		if marks[i], err = d.drv.EventCreate(true); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, d.drv.EventDestroy(marks[i])) }()
	}
	for run := range probeRuns + 1 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := d.drv.EventRecord(marks[0], d.stream); err != nil {
			return nil, err
		}
		if err := d.drv.Launch(k, d.stream); err != nil {
			return nil, err
		}
		if err := d.drv.EventRecord(marks[1], d.stream); err != nil {
			return nil, err
		}
		if err := d.drv.StreamSynchronize(d.stream); err != nil {
			return nil, err
		}
		elapsed, err := d.drv.EventElapsed(marks[0], marks[1])
		if err != nil {
			return nil, err
		}
		if run > 0 { // the first one loads the code
			times = append(times, elapsed)
		}
	}
	return times, nil
}
