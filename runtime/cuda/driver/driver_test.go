package driver_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"strings"
	"testing"

	"tgc/runtime/cuda/driver"
	"tgc/runtime/cuda/internal/stub"
)

// open opens the stub with a context on its first device.
func open(t *testing.T, flags ...string) (*driver.Library, *stub.Stub) {
	t.Helper()
	s := stub.Build(t, flags...)
	l, err := driver.Open(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	goruntime.LockOSThread()
	t.Cleanup(goruntime.UnlockOSThread)
	c := must(l.ContextCreate(must(l.DeviceAt(0))(t)))(t)
	t.Cleanup(func() {
		check(t, l.ContextDestroy(c))
		if live := s.Live(); live != "" {
			t.Errorf("left over: %s", live)
		}
	})
	return l, s
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		check(t, err)
		return v
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const scalePTX = `.visible .entry scale(.param .u64 x, .param .u64 y, .param .u64 n) { ret; }`

// kernel loads the stub's kernel that multiplies 16 floats a block.
func kernel(t *testing.T, l *driver.Library) driver.Func {
	t.Helper()
	cubin, log, err := l.Link("scale", scalePTX)
	if err != nil || !strings.Contains(log, "ptxas info") {
		t.Fatalf("link: %v, log %q", err, log)
	}
	m, _, err := l.ModuleLoad(cubin)
	check(t, err)
	t.Cleanup(func() { check(t, l.ModuleUnload(m)) })
	return must(l.ModuleFunction(m, "scale"))(t)
}

func TestDevices(t *testing.T) {
	for _, flags := range [][]string{nil, {"-DOLD"}} {
		l, _ := open(t, flags...)
		if n := must(l.DeviceCount())(t); n != 2 {
			t.Errorf("%d devices", n)
		}
		if name := must(l.DeviceName(1))(t); name != "Stub GPU 1" {
			t.Errorf("name %q", name)
		}
		if v := must(l.DeviceAttribute(1, driver.ComputeMinor))(t); v != 7 {
			t.Errorf("minor %d", v)
		}
		if total := must(l.DeviceMemory(0))(t); total != 256<<20 {
			t.Errorf("%d bytes", total)
		}
		if old := len(flags) > 0; l.Programmatic() == old || (l.Version() == 12000) != old {
			t.Errorf("version %d, programmatic %v", l.Version(), l.Programmatic())
		}
	}
}

// An error has the call, the driver's name and text of the code.
func TestErrors(t *testing.T) {
	l, s := open(t)
	_, err := l.DeviceAt(7)
	if want := "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101): invalid device ordinal"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if driver.CodeOf(err) != driver.InvalidDevice || driver.Sticky(err) || !errors.Is(err, &driver.Error{Code: driver.InvalidDevice}) {
		t.Errorf("code %d", driver.CodeOf(err))
	}
	s.Fail("cuMemAlloc_v2", 4242, 1) // a code that the driver itself does not know
	if _, err := l.MemAlloc(1); err == nil || err.Error() != "cuMemAlloc_v2: error 4242" {
		t.Error(err)
	}
	if _, log, err := l.Link("bad", "SYNTAX"); driver.CodeOf(err) != driver.InvalidPTX || !strings.Contains(log, "Parsing error near 'SYNTAX'") {
		t.Errorf("%v, log %q", err, log)
	}
	if _, _, err := l.ModuleLoad([]byte("no image")); driver.CodeOf(err) != 200 {
		t.Error(err)
	}
	if _, err := l.HostAlloc(0); err == nil {
		t.Error("pinned memory of no bytes")
	}
	check(t, l.ContextSet(0))
	if _, err := l.MemAlloc(1); driver.CodeOf(err) != driver.InvalidContext {
		t.Error(err)
	}
}

// Copies, fills and sizes reach the driver as they were given.
func TestMemory(t *testing.T) {
	l, _ := open(t)
	stream := must(l.StreamCreate())(t)
	p := must(l.MemAlloc(1 << 20))(t)
	if free, total, err := l.MemInfo(); err != nil || total-free != 1<<20 {
		t.Errorf("%d of %d free, %v", free, total, err)
	}
	b := must(l.HostAlloc(64))(t)
	for i := range b {
		b[i] = byte(i)
	}
	check(t, l.Fill(p, 0xee, 1<<20, stream))
	check(t, l.CopyToDevice(p+5, b[:7], stream))
	check(t, l.CopyToHost(b[32:42], p+4, stream))
	check(t, l.StreamSynchronize(stream))
	if want := []byte{0xee, 0, 1, 2, 3, 4, 5, 6, 0xee, 0xee}; !reflect.DeepEqual(b[32:42], want) {
		t.Errorf("% x, want % x", b[32:42], want)
	}
	check(t, l.HostFree(b))
	check(t, l.MemFree(p))
	check(t, l.StreamDestroy(stream))
	if err := l.MemFree(p); err == nil {
		t.Error("freed twice")
	}
}

// cuLaunchKernel takes 11 arguments, five of them on the stack, and an array of
// addresses of the parameters.
func TestLaunch(t *testing.T) {
	l, s := open(t)
	stream, f := must(l.StreamCreate())(t), kernel(t, l)
	p := must(l.MemAlloc(4096))(t)
	check(t, l.Fill(p, 0x40, 4096, stream)) // 0x40404040 is 3.00392..
	s.Log()
	k := &driver.Kernel{Func: f, Grid: [3]uint32{3, 2, 5}, Block: [3]uint32{32, 4, 8}, Shared: 1234, Params: []uint64{uint64(p), uint64(p) + 1024, ^uint64(1)}}
	check(t, l.Launch(k, stream))
	if log := s.Log(); len(log) != 1 || log[0] != "run scale grid 3,2,5 block 32,4,8 shared 1234" {
		t.Error(log)
	}
	b := must(l.HostAlloc(192))(t)
	check(t, l.CopyToHost(b, p+1024, stream))
	if b[3] != 0xc0 || b[2] != 0xc0 { // times -2
		t.Errorf("% x", b[:4])
	}
	k.Shared = 64 << 10
	if err := l.Launch(k, stream); driver.CodeOf(err) != 1 {
		t.Errorf("dynamic memory beyond the default: %v", err)
	}
	check(t, l.FuncSetAttribute(f, driver.FuncDynamicShared, 64<<10))
	check(t, l.Launch(k, stream))
	if v := must(l.FuncAttribute(f, driver.FuncRegisters))(t); v != 32 {
		t.Errorf("%d registers", v)
	}
	check(t, l.HostFree(b))
	check(t, l.MemFree(p))
	check(t, l.StreamDestroy(stream))
}

// The struct of a kernel node, edges of both kinds, marks and changed
// parameters, by the newer and the older names.
func TestGraph(t *testing.T) {
	for _, flags := range [][]string{nil, {"-DOLD"}} {
		l, s := open(t, flags...)
		stream, f := must(l.StreamCreate())(t), kernel(t, l)
		p := must(l.MemAlloc(4096))(t)
		check(t, l.Fill(p, 0x40, 4096, stream))
		g := must(l.GraphCreate())(t)
		k := driver.Kernel{Func: f, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{64, 2, 1}, Shared: 16, Params: []uint64{uint64(p), uint64(p) + 1024, 2}}
		s.Log()
		start, end := must(l.EventCreate(true))(t), must(l.EventCreate(true))(t)
		first := must(l.GraphAddEventRecord(g, nil, start))(t)
		second := must(l.GraphAddKernel(g, []driver.Node{first}, &k))(t)
		join := must(l.GraphAddEmpty(g, []driver.Node{first, second}))(t)
		after := k
		after.Grid, after.Params = [3]uint32{2, 1, 1}, []uint64{uint64(p) + 1024, uint64(p) + 2048, 3}
		third := must(l.GraphAddKernel(g, []driver.Node{join}, &after))(t)
		fourth := must(l.GraphAddKernel(g, []driver.Node{first}, &k))(t)
		last := must(l.GraphAddEventRecord(g, nil, end))(t)
		check(t, l.GraphAddEdges(g, []driver.Node{third, fourth}, []driver.Node{last, last}, driver.FullEdge))
		early := l.GraphAddEdges(g, []driver.Node{third}, []driver.Node{fourth}, driver.ProgrammaticEdge)
		if (early == nil) != l.Programmatic() {
			t.Errorf("programmatic edge: %v", early)
		}
		check(t, l.GraphAddEdges(g, nil, nil, driver.FullEdge))
		if err := l.GraphAddEdges(g, []driver.Node{first}, nil, driver.FullEdge); err == nil {
			t.Error("an edge without end")
		}
		want := []string{"edge 0 1 full", "edge 0 2 full", "edge 1 2 full", "edge 2 3 full", "edge 0 4 full", "edge 3 5 full", "edge 4 5 full", "edge 3 4 programmatic"}
		if log := s.Log(); !reflect.DeepEqual(log, want[:len(log)]) || len(log) < 7 {
			t.Errorf("%q", log)
		}
		e := must(l.GraphInstantiate(g))(t)
		check(t, l.GraphUpload(e, stream))
		k.Params = []uint64{uint64(p), uint64(p) + 1024, 5}
		check(t, l.GraphSetKernel(e, second, &k))
		s.Log()
		check(t, l.GraphLaunch(e, stream))
		check(t, l.StreamSynchronize(stream))
		if elapsed := must(l.EventElapsed(start, end))(t); elapsed.Microseconds() < 29 || elapsed.Microseconds() > 31 {
			t.Errorf("%v for three kernels of 10 us", elapsed)
		}
		log := strings.Join(s.Log(), "\n")
		if !strings.Contains(log, "run scale grid 1,1,1 block 64,2,1 shared 16\nrun scale grid 2,1,1 block 64,2,1 shared 16") && l.Programmatic() {
			t.Errorf("%s", log)
		}
		check(t, l.GraphExecDestroy(e))
		check(t, l.GraphDestroy(g))
		check(t, l.EventDestroy(start))
		check(t, l.EventDestroy(end))
		check(t, l.MemFree(p))
		check(t, l.StreamDestroy(stream))
	}
}

func TestOpenWithout(t *testing.T) {
	if _, err := driver.Open(filepath.Join(t.TempDir(), "libcuda.so.1")); !errors.Is(err, driver.ErrNoLibrary) || !strings.Contains(err.Error(), "TGC_CUDA_PATH") {
		t.Errorf("%v, want ErrNoLibrary", err)
	}
	empty := stub.Build(t, "-DNO_DEVICE")
	if _, err := driver.Open(empty.Path); driver.CodeOf(err) != driver.NoDevice {
		t.Errorf("%v, want NoDevice", err)
	}
	if _, err := driver.Open(filepath.Dir(empty.Path)); driver.CodeOf(err) != driver.NoDevice {
		t.Errorf("by folder: %v, want NoDevice", err)
	}
	text := filepath.Join(t.TempDir(), "libcuda.so.1")
	check(t, os.WriteFile(text, []byte("no library"), 0o600))
	if _, err := driver.Open(text); !errors.Is(err, driver.ErrNoLibrary) {
		t.Errorf("a text as library: %v", err)
	}
}
