package devices

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"

	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/runtime"
	"tgc/runtime/hcq"
	"tgc/runtime/hcq/emu"
	"tgc/runtime/hcq/port"
	"tgc/runtime/hcq/tegra"
	"tgc/runtime/hcq/tegra/kernel"
	"tgc/runtime/hcq/trace"
	"tgc/runtime/nvidia"
)

// openTegra opens the GPU of a Jetson. Where there is none its node is missing.
func openTegra(_ context.Context, _ int, opt Options) (runtime.Device, error) {
	dev, err := openQueue(kernel.Port{}, hcq.Options{Name: "tegra", CacheDir: opt.CacheDir}, opt)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	return dev, err
}

// openTegraEmulated makes a Jetson with its kernel driver.
func openTegraEmulated(_ context.Context, _ int, opt Options) (runtime.Device, error) {
	machine := emu.New(emu.Options{Say: opt.Trace != nil})
	return openQueue(machine, hcq.Options{Name: "tegra:emu", CacheDir: opt.CacheDir, Loaded: machine.Know}, opt)
}

// openQueue brings a Jetson up behind a port.
func openQueue(to port.Port, options hcq.Options, opt Options) (runtime.Device, error) {
	if opt.Trace != nil {
		recorder := trace.NewRecorder(to, opt.Trace)
		to, options.Placed = recorder, hcq.RecordKernel(recorder)
	}
	board, err := tegra.Open(to, tegra.Options{})
	if err != nil {
		return nil, err
	}
	dev, err := hcq.New(board, options)
	if err != nil {
		return nil, err
	}
	return dev, nil
}

func describeTegra(info *Info, dev runtime.Device, _ Options) {
	if gpu, ok := dev.(*hcq.Device); ok {
		board := gpu.Info()
		info.Name, info.Threads, info.MemoryBytes = board.Chip, dev.Target().Cost.Workers, board.MemoryBytes
	}
}

// tegraLacks are the reasons for which a Jetson's GPU does not open, in the order in which
// they are met.
var tegraLacks = []struct {
	is   error
	text string
}{
	{fs.ErrNotExist, "no node %s: no Jetson, or JetPack 7"},
	{fs.ErrPermission, "no permission for %s: be a member of the groups video and render"},
	{tegra.ErrRelease, "another L4T than R36 (JetPack 6)%s"},
	{nvidia.ErrNoAssembler, "no ptxas and no libnvJitLink: apt install cuda-nvcc-12-6, or set TGC_CUDA_PATH%.0s"},
}

// releaseFile is where L4T says its release: "# R36 (release), REVISION: 4.3, ..".
const releaseFile = "/etc/nv_tegra_release"

// lacksTegra says in one line why a Jetson's GPU does not open.
func lacksTegra(err error) string {
	for _, row := range tegraLacks {
		if !errors.Is(err, row.is) {
			continue
		}
		var node *fs.PathError
		detail := ""
		if errors.As(err, &node) {
			detail = node.Path
		} else if release := release(); release != "" {
			detail = ": this is " + release
		}
		return fmt.Sprintf(row.text, detail)
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// release is the release of L4T; empty where there is none.
func release() string {
	text, err := os.ReadFile(releaseFile)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), "\n")
	major, rest, _ := strings.Cut(strings.TrimPrefix(first, "# "), " (release), REVISION: ")
	revision, _, _ := strings.Cut(rest, ",")
	return strings.TrimSuffix(major+"."+revision, ".")
}

// probe is the program that Report runs: y[i] = x[i] + n.
const probe = `program "probe"
param %0:*f32 buffer slot 0 name "x" align 4 bytes 256 read
param %1:*f32 buffer slot 1 name "y" align 4 bytes 256 read write
param %2:i64 var name "n"
grid 64
gridloop %3:i64 {
  %4:*f32 = ptradd %0 %3
  %5:f32 = load %4 align 4
  %6:f32 = cast %2
  %7:f32 = add %5 %6
  %8:*f32 = ptradd %1 %3
  store %8 %7 align 4
}
`

// Report opens a device that has traces, runs a kernel and a copy, checks their values, and writes
// the trace of all that with what the machine is. What goes wrong is in the report, and
// returned.
func Report(ctx context.Context, name string, to io.Writer) error {
	_, err := fmt.Fprintf(to, "# tgc devices --report %s\n# machine: %s; L4T: %s\n", name, processorName(), release())
	if err != nil {
		return err
	}
	dev, _, err := Open(ctx, name, Options{Trace: to})
	if err == nil {
		err = errors.Join(runProbe(ctx, dev), dev.Close())
	}
	result := "the values of the kernel and of the copy are right"
	if err != nil {
		result = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	_, writeErr := fmt.Fprintf(to, "# %s\n", result)
	return errors.Join(err, writeErr)
}

func runProbe(ctx context.Context, dev *Device) error {
	p, err := program.Parse(probe)
	if err != nil {
		return err
	}
	execs, err := dev.Load(ctx, []*program.Program{opt.Expand(p, dev.Target())})
	if err != nil {
		return err
	}
	const bytes = 256
	m, err := dev.Alloc(ctx, bytes)
	if err != nil {
		return err
	}
	defer m.Free()
	call := runtime.Call{Exec: execs[0], Slots: map[int]runtime.View{0: {Memory: m}, 1: {Memory: m}}}
	step, err := dev.Record(ctx, []runtime.Launch{{Calls: []runtime.Call{call}}, {Calls: []runtime.Call{call}}})
	if err != nil {
		return err
	}
	defer step.Free()
	for range 2 {
		if err := step.Run(ctx, map[string]int64{"n": 3}); err != nil {
			return err
		}
	}
	b := make([]byte, bytes)
	if err := m.Read(ctx, 0, b); err != nil {
		return err
	}
	for i := 0; i < bytes; i += 4 {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(b[i:])); got != 12 {
			return fmt.Errorf("element %d is %g after two runs of two launches that add 3, want 12", i/4, got)
		}
	}
	return probeCopy(ctx, dev)
}

// probeBytes is a copy that a queue makes, for it is more than the CPU copies.
const probeBytes = 1 << 20

// probeCopy copies memory of which the last word is something.
func probeCopy(ctx context.Context, dev *Device) error {
	const mark = 0x600dc0de
	var m [2]runtime.Memory
	for i := range m {
		var err error
		if m[i], err = dev.Alloc(ctx, probeBytes); err != nil {
			return err
		}
		defer m[i].Free()
	}
	b := binary.LittleEndian.AppendUint32(nil, mark)
	if err := m[0].Write(ctx, probeBytes-4, b); err != nil {
		return err
	}
	if err := runtime.Copy(ctx, m[1], 0, m[0], 0, probeBytes); err != nil {
		return err
	}
	if err := m[1].Read(ctx, probeBytes-4, b); err != nil {
		return err
	}
	if got := binary.LittleEndian.Uint32(b); got != mark {
		return fmt.Errorf("the last word of a copy of %d bytes is %#x, want %#x", probeBytes, got, mark)
	}
	return nil
}
