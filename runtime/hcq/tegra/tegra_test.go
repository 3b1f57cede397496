package tegra_test

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"tgc/runtime/hcq"
	"tgc/runtime/hcq/check"
	"tgc/runtime/hcq/emu"
	"tgc/runtime/hcq/tegra"
	"tgc/runtime/hcq/trace"
)

// Every byte of what Open asks for is that of the kernel's structures.
func TestBringUp(t *testing.T) {
	var got strings.Builder
	machine := emu.New(emu.Options{})
	board, err := tegra.Open(trace.NewRecorder(machine, &got), tegra.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if i := board.Info(); i.Chip != "ga10b" || i.SM != 87 || i.GPCs != 2 || i.TPCsPerGPC != 4 || i.WarpsPerSM != 96 || i.ComputeClass != 0xc7c0 {
		t.Errorf("%+v", i)
	}
	if err := board.Close(); err != nil {
		t.Error(err)
	}
	if live := machine.Live(); live != "" {
		t.Errorf("left over: %s", live)
	}
	text, err := os.ReadFile("testdata/bringup.trace")
	if err != nil {
		t.Fatal(err)
	}
	events, err := trace.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	have, want := strings.Split(got.String(), "\n"), strings.Split(trace.Print(events), "\n")
	for i := range min(len(have), len(want)) {
		if have[i] != want[i] {
			t.Fatalf("line %d:\n%s\nwant\n%s", i+1, have[i], want[i])
		}
	}
	if len(have) != len(want) {
		t.Errorf("%d lines, want %d", len(have), len(want))
	}
	for _, d := range check.Trace(events) {
		t.Error(d)
	}
}

// notified is a machine whose error notifier the test writes.
type notified struct {
	*emu.Machine
	pages  [][]byte
	states int
}

func (n *notified) Mmap(fd, bytes int) ([]byte, error) {
	b, err := n.Machine.Mmap(fd, bytes)
	n.pages = append(n.pages, b)
	return b, err
}

func (n *notified) Ioctl(fd int, number uint32, argument, pointee []byte, pointer int) error {
	const readStates = 0xc0185411
	if number != readStates {
		return n.Machine.Ioctl(fd, number, argument, pointee, pointer)
	}
	if n.states < 0 {
		return syscall.ENODEV
	}
	binary.LittleEndian.PutUint32(pointee[24*n.states+4:], 0x10)
	binary.LittleEndian.PutUint64(pointee[24*n.states+8:], 0xfe40001234)
	return nil
}

// What the notifier and the multiprocessors say becomes an error.
func TestFault(t *testing.T) {
	port := &notified{Machine: emu.New(emu.Options{}), states: 3}
	board, err := tegra.Open(port, tegra.Options{Entries: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer board.Close()
	if err := board.Fault(); err != nil {
		t.Fatalf("a fault of nothing: %v", err)
	}
	notifier := port.pages[2]
	notifier[14], notifier[15], notifier[8] = 0xff, 0xff, 13
	var fault *hcq.BoardFault
	if err := board.Fault(); !errors.As(err, &fault) || fault.Code != 13 || fault.WarpESR != 0x10 || fault.PC != 0xfe40001234 || !strings.Contains(err.Error(), "in a window") {
		t.Errorf("%v", err)
	}
	port.states = -1
	if err := board.Fault(); !errors.As(err, &fault) || !errors.Is(err, syscall.ENODEV) {
		t.Errorf("%v", err)
	}
	port.states = 3
	notifier[14], notifier[15] = 0, 0
	copies := port.pages[5]
	copies[14], copies[15], copies[8] = 0xff, 0xff, 31
	if err := board.Fault(); !errors.As(err, &fault) || fault.Code != 31 {
		t.Errorf("of the copy queue: %v", err)
	}
	copies[14] = 0
	notifier[14], notifier[15] = 0xff, 0xff
	port.states = -1
	notifier[8] = 99
	if err := board.Fault(); err == nil || !strings.Contains(err.Error(), "no known meaning") {
		t.Errorf("%v", err)
	}
}

// A kernel driver of another release is refused before anything is made.
func TestOtherRelease(t *testing.T) {
	port := &other{Machine: emu.New(emu.Options{})}
	if _, err := tegra.Open(port, tegra.Options{}); err == nil || !strings.Contains(err.Error(), "characteristics of 400 bytes") {
		t.Errorf("%v", err)
	}
	if live := port.Live(); live != "" {
		t.Errorf("left over: %s", live)
	}
}

// A ring that has frozen a board is refused before anything is opened; the emulated machine
// takes it, and says so.
func TestLargeRing(t *testing.T) {
	machine := emu.New(emu.Options{})
	if _, err := tegra.Open(machine, tegra.Options{Entries: 3 << 20 / 8}); err == nil || !strings.Contains(err.Error(), "a ring of 393216 entries") {
		t.Errorf("%v", err)
	}
	if got := machine.Counts(); len(got) != 0 {
		t.Errorf("%v were asked for", got)
	}
}

type other struct{ *emu.Machine }

func (o *other) Ioctl(fd int, number uint32, argument, pointee []byte, pointer int) error {
	err := o.Machine.Ioctl(fd, number, argument, pointee, pointer)
	binary.LittleEndian.PutUint64(argument, 400)
	return err
}
