package hcq_test

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tgc/internal/cudatools"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/runtime"
	"tgc/runtime/hcq"
	"tgc/runtime/hcq/emu"
	"tgc/runtime/hcq/tegra"
	"tgc/runtime/nvidia"
)

// errnos are what a kernel driver may answer to a request.
var errnos = []syscall.Errno{syscall.ENOMEM, syscall.EINVAL, syscall.EIO, syscall.ENODEV}

// faults are what a channel ends with: numbers of the notifier, and of a warp's error.
var faults = [][2]uint32{
	{8, 0}, {12, 0}, {13, 0}, {24, 0}, {25, 0}, {31, 0}, {32, 0}, {37, 0}, {43, 0}, {80, 0}, {99, 0},
	{13, 0x1}, {13, 0x2}, {13, 0x4}, {13, 0x5}, {13, 0x6}, {13, 0x8}, {13, 0x9}, {13, 0xb}, {13, 0xd}, {13, 0xe}, {13, 0xf}, {13, 0x10}, {13, 0x12},
	{13, 0x17}, {31, 0x17}, {31, 0x20},
}

// injuries are all that can happen where so much of each was counted.
func injuries(counts emu.Counts) []emu.Injury {
	var list []emu.Injury
	for n := range counts[emu.OnRequest] {
		for _, e := range errnos {
			list = append(list, emu.Injury{Where: emu.OnRequest, Number: n + 1, Errno: e})
		}
	}
	for n := range counts[emu.OnDoorbell] {
		list = append(list, emu.Injury{Where: emu.OnDoorbell, Number: n + 1})
	}
	for n := range counts[emu.OnLaunch] {
		for _, f := range faults {
			list = append(list, emu.Injury{Where: emu.OnLaunch, Number: n + 1, Notify: f[0], WarpESR: f[1]})
		}
	}
	for n := range counts[emu.OnEnd] {
		list = append(list, emu.Injury{Where: emu.OnEnd, Number: n + 1})
	}
	for n := range counts[emu.OnCopy] {
		for _, f := range faults {
			if f[1] == 0 { // no multiprocessor copies
				list = append(list, emu.Injury{Where: emu.OnCopy, Number: n + 1, Notify: f[0]})
			}
		}
	}
	return list
}

// Whatever goes wrong, once: a request, a doorbell, a launch, a copy; the end is an error that
// says what it was, or the right values; and nothing is left open.
func TestInjuries(t *testing.T) {
	if cudatools.FromEnvironment().PtxasPath == "" {
		t.Skip("no ptxas")
	}
	life := &life{cache: t.TempDir(), programs: []*program.Program{addProgram(t, "add", 3), copyProgram(t, 3)}}
	machine := emu.New(emu.Options{})
	if got, err := life.live(t, machine); err != nil || !slices.Equal(got, lifeValues) {
		t.Fatalf("%v, %v, want %v", got, err, lifeValues)
	}
	whole := machine.Counts()
	list := injuries(whole)
	t.Logf("%d injuries: %v", len(list), whole)
	if len(list) < 500 {
		t.Errorf("%d injuries, want 500", len(list))
	}
	var all sync.WaitGroup
	for first := range livesAtOnce { // they wait more than they work
		all.Go(func() {
			for i := first; i < len(list); i += livesAtOnce {
				life.injured(t, list[i], whole)
			}
		})
	}
	all.Wait()
}

const livesAtOnce = 4

// injured lives with an injury, where a life without one counted so much.
func (l *life) injured(t *testing.T, injury emu.Injury, whole emu.Counts) {
	machine := emu.New(emu.Options{Injury: &injury})
	got, err := l.live(t, machine)
	switch {
	case err == nil && !slices.Equal(got, lifeValues):
		t.Errorf("%+v: %v, want %v", injury, got, lifeValues)
	case err != nil && !says(err, injury):
		t.Errorf("%+v: %v", injury, err)
	case err == nil && injury.Where == emu.OnRequest && machine.Counts()[emu.OnRequest] <= whole[emu.OnRequest]:
		t.Errorf("%+v: nobody says so, or asks for something else", injury)
	}
	if live := machine.Live(); live != "" {
		t.Errorf("%+v: left over: %s", injury, live)
	}
}

// says reports an error that names what went wrong.
func says(err error, injury emu.Injury) bool {
	var fault *hcq.BoardFault
	switch injury.Where {
	case emu.OnRequest:
		return errors.Is(err, injury.Errno) || errors.Is(err, nvidia.ErrOutOfMemory)
	case emu.OnLaunch:
		return errors.As(err, &fault) && fault.Code == injury.Notify && fault.WarpESR == injury.WarpESR &&
			strings.Contains(err.Error(), "kernel") && (injury.WarpESR == 0 || fault.Warp != "")
	}
	if injury.Where == emu.OnCopy {
		return errors.As(err, &fault) && fault.Code == injury.Notify && strings.Contains(err.Error(), "a copy of memory")
	}
	return errors.Is(err, hcq.ErrTimeout) && strings.Contains(err.Error(), "ring entry")
}

// life is what a device does from its opening to its end.
type life struct {
	cache    string
	programs []*program.Program
}

// lifeBlock is the memory that a life takes from the board at once, in bytes: little, so
// that lives are short.
const lifeBlock = 64 << 10

// lifeValues are what it leaves in memory.
var lifeValues = []float32{6, 2, 6}

func (l *life) live(t *testing.T, machine *emu.Machine) (values []float32, err error) {
	board, err := tegra.Open(machine, tegra.Options{Entries: 8})
	if err != nil {
		return nil, err
	}
	d, err := hcq.New(board, hcq.Options{CacheDir: l.cache, Loaded: machine.Know, Timeout: 5 * time.Millisecond, BlockBytes: lifeBlock})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	d.QueueCopies()
	var expanded []*program.Program
	for _, p := range l.programs {
		expanded = append(expanded, opt.Expand(p, d.Target()))
	}
	execs, err := d.Load(t.Context(), expanded)
	if err != nil {
		return nil, err
	}
	m := make([]runtime.Memory, 4)
	for i, size := range []int64{12, 12, 12, lifeBlock} { // the last one is a block of its own
		if m[i], err = d.Alloc(t.Context(), size); err != nil {
			return nil, err
		}
		defer m[i].Free()
	}
	return steps(t, d, execs[0], execs[1], m)
}

// steps runs a step twice ahead, one of several calls, a repeated one, a profile, an upload
// and a copy.
func steps(t *testing.T, d *hcq.Device, add, copy runtime.Executable, m []runtime.Memory) (values []float32, err error) {
	vars := map[string]int64{"n": 2}
	first, err := d.Record(t.Context(), []runtime.Launch{{Calls: []runtime.Call{pair(add, m[0], m[0])}}})
	if err != nil {
		return nil, err
	}
	defer first.Free()
	several, err := d.Record(t.Context(), []runtime.Launch{{Calls: []runtime.Call{pair(copy, m[1], m[1]), pair(copy, m[0], m[2])}}, {Calls: []runtime.Call{pair(copy, m[0], m[0])}}})
	if err != nil {
		return nil, err
	}
	defer several.Free()
	twice, err := first.(runtime.Repeater).Repeat(t.Context(), 1)
	if err != nil {
		return nil, err
	}
	defer twice.Free()
	if err := first.(runtime.Queue).Start(t.Context(), vars); err != nil {
		return nil, err
	}
	for _, run := range []func() error{
		func() error { return twice.Run(t.Context(), vars) },
		func() error { return several.Run(t.Context(), nil) },
		func() error { _, err := several.Profile(t.Context(), nil); return err },
		func() error { return m[3].Write(t.Context(), lifeBlock-4, []byte{1, 2, 3, 4}) },
		func() error { return runtime.Copy(t.Context(), m[0], 4, m[3], lifeBlock-8, 8) },
	} {
		if err := run(); err != nil {
			return nil, err
		}
	}
	for i := range 3 {
		b := make([]byte, 12)
		if err := m[i].Read(t.Context(), 0, b); err != nil {
			return nil, err
		}
		values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return values, nil
}
