package devices_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tgc/runtime/devices"
)

func TestNames(t *testing.T) {
	for name, known := range map[string]bool{
		"cpu": true, "interp": true, "cuda": true, "cuda:0": true, "cuda:3": true, "nv:1": true, "tegra": true, "tegra:emu": true,
		"cuda:emu": true, "cuda:emu:sm_87": true, "cuda:emu:": false, "cuda:emu:0": false, "cuda:emu:sm_": false, "cuda:emu:sm_0": false, "cuda:emu2": false,
		"cpu:0": false, "cuda:": false, "cuda:x": false, "cuda:-1": false, "cuda:99999": false, "tegra:0": false, "": false, "gpu": false,
	} {
		if err := devices.Check(name); (err == nil) != known || err != nil && !errors.Is(err, devices.ErrUnknown) {
			t.Errorf("Check(%q) says %v, want known: %v", name, err, known)
		}
	}
}

func TestOpen(t *testing.T) {
	dev, remark, err := devices.Open(t.Context(), "interp", devices.Options{})
	if err != nil || dev.Name() != "interp" || remark != "" || dev.Threads(devices.Options{Threads: 8}) != 1 {
		t.Fatalf("interp: %v %q %v", dev, remark, err)
	}
	if _, _, err := devices.Open(t.Context(), "cuda:1", devices.Options{}); !errors.Is(err, devices.ErrAbsent) {
		t.Errorf("cuda:1: %v, want ErrAbsent", err)
	}
	if _, err := os.Stat("/dev/nvgpu/igpu0/ctrl"); err != nil {
		if _, _, err := devices.Open(t.Context(), "tegra", devices.Options{}); !errors.Is(err, devices.ErrAbsent) || !strings.Contains(err.Error(), "/dev/nvgpu/igpu0/ctrl") {
			t.Errorf("tegra: %v, want ErrAbsent and the node", err)
		}
	}
	best, remark, err := devices.Open(t.Context(), "", devices.Options{Threads: 1})
	if err != nil || remark == "" {
		t.Fatalf("the best device: %v, %q", err, remark)
	}
	if err := best.Close(); err != nil {
		t.Error(err)
	}
}

// A machine without a GPU says what it looked for, and is given the CPU.
func TestWithoutGPU(t *testing.T) {
	t.Setenv("TGC_CUDA_PATH", "/no/such/libcuda.so.1")
	for _, name := range []string{"cuda", "cuda:0", "cuda:3"} {
		_, _, err := devices.Open(t.Context(), name, devices.Options{})
		if !errors.Is(err, devices.ErrAbsent) || !strings.Contains(err.Error(), "/no/such/libcuda.so.1") || !strings.Contains(err.Error(), "TGC_CUDA_PATH") {
			t.Errorf("%s: %v, want ErrAbsent and where the library was looked for", name, err)
		}
	}
	list := listed(t)
	if _, gpu := list["cuda:0"]; gpu || list["cpu"].Absent != "" && !strings.Contains(list["cpu"].Absent, "LLVM") ||
		list["cuda:emu"].Absent != "" || !strings.Contains(list["tegra:emu"].Absent, "ptxas") {
		t.Errorf("list %+v", list)
	}
}

// listed are the devices of this machine by their names; those that are always named are there.
func listed(t *testing.T) map[string]devices.Info {
	t.Helper()
	list, err := devices.List(t.Context(), devices.Options{})
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[string]devices.Info)
	for _, info := range list {
		named[info.Device] = info
	}
	for _, name := range []string{"tegra", "cpu", "interp", "cuda:emu", "tegra:emu"} {
		if _, ok := named[name]; !ok {
			t.Errorf("no %s in the list %+v", name, list)
		}
	}
	return named
}

// A library that is no driver is a reason, not a failure of the list.
func TestBrokenDriver(t *testing.T) {
	library := filepath.Join(t.TempDir(), "libcuda.so.1")
	if out, err := exec.Command("cc", "-shared", "-o", library, "-x", "c", "/dev/null").CombinedOutput(); err != nil {
		t.Skipf("no C compiler: %v %s", err, out)
	}
	t.Setenv("TGC_CUDA_PATH", library)
	if _, _, err := devices.Open(t.Context(), "cuda", devices.Options{}); err == nil || !strings.Contains(err.Error(), library) {
		t.Errorf("%v, want the library's path", err)
	}
	if _, err := devices.List(t.Context(), devices.Options{}); err != nil {
		t.Error(err)
	}
}

// A machine without libLLVM has a device, and is told what it lacks.
func TestWithoutLLVM(t *testing.T) {
	t.Setenv("TGC_LLVM", "/no/such/library.so")
	t.Setenv("TGC_CUDA_PATH", "/no/such/libcuda.so.1")
	dev, remark, err := devices.Open(t.Context(), "", devices.Options{})
	if err != nil || dev.Name() != "interp" || remark == "" {
		t.Fatalf("%v, %q, %v; want interp and how to get the fast path", dev, remark, err)
	}
	if _, _, err := devices.Open(t.Context(), "cpu", devices.Options{}); !errors.Is(err, devices.ErrNoLLVM) {
		t.Errorf("cpu: %v, want ErrNoLLVM", err)
	}
	if list := listed(t); list["cpu"].Absent == "" || list["interp"].Absent != "" {
		t.Errorf("list %+v; want the reason why cpu is absent", list)
	}
}
