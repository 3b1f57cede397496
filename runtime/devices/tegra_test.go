package devices

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"tgc/internal/cudatools"
	"tgc/runtime/hcq"
	"tgc/runtime/hcq/check"
	"tgc/runtime/hcq/emu"
	"tgc/runtime/hcq/port"
	"tgc/runtime/hcq/trace"
)

// lacking is a machine that lacks something.
type lacking struct {
	*emu.Machine
	node    error // of Open
	request uint32
	answer  error // of that request
}

func (l *lacking) Open(path string) (int, error) {
	if l.node != nil {
		return -1, l.node
	}
	return l.Machine.Open(path)
}

func (l *lacking) Ioctl(fd int, number uint32, argument, pointee []byte, pointer int) error {
	if number == l.request {
		return l.answer
	}
	return l.Machine.Ioctl(fd, number, argument, pointee, pointer)
}

// What is missing is one line: node, permission, release, toolkit.
func TestTegraLacks(t *testing.T) {
	const openTSG = 0xc0184709
	t.Setenv("PATH", "")
	for want, c := range map[string]struct {
		port *lacking
		path string
	}{
		"no node /dev/nvgpu/igpu0/ctrl: no Jetson": {&lacking{node: syscall.ENOENT}, ""},
		"no permission for /dev/nvgpu/igpu0/ctrl":  {&lacking{node: syscall.EACCES}, ""},
		"another L4T than R36":                     {&lacking{request: openTSG, answer: syscall.ENOTTY}, ""},
		"no ptxas and no libnvJitLink":             {&lacking{}, "/no/such"},
		"GPU_OPEN_TSG: cannot allocate memory":     {&lacking{request: openTSG, answer: syscall.ENOMEM}, ""},
	} {
		c.port.Machine = emu.New(emu.Options{})
		_, err := openQueue(c.port, hcq.Options{CUDAPath: c.path}, Options{})
		if err == nil {
			if cudatools.Find(c.path).PtxasPath != "" {
				continue // a toolkit that is found everywhere
			}
			t.Errorf("%s: it opens", want)
			continue
		}
		if got := lacksTegra(err); !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%q, want %q", got, want)
		}
		if live := c.port.Live(); live != "" {
			t.Errorf("%s: left over: %s", want, live)
		}
	}
	if got := lacksTegra(errors.Join(errors.New("a"), errors.New("b"))); got != "a; b" {
		t.Error(got)
	}
}

// A report is a trace that the checker accepts, with the machine and the result.
func TestReport(t *testing.T) {
	if cudatools.FromEnvironment().PtxasPath == "" {
		t.Skip("no ptxas")
	}
	var text strings.Builder
	if err := Report(t.Context(), "tegra:emu", &text); err != nil {
		t.Fatal(err)
	}
	events, err := trace.Parse(text.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range check.Trace(events) {
		t.Error(d)
	}
	if n := strings.Count(text.String(), "\ngpu launch qmd="); n != 4 { // two runs of two
		t.Errorf("the machine says %d launches", n)
	}
	if n := strings.Count(text.String(), "\ngpu copy from="); n != 1 {
		t.Errorf("the machine says %d copies", n)
	}
	if !strings.Contains(text.String(), "# the values of the kernel and of the copy are right\n") || !strings.Contains(text.String(), "# machine: ") {
		t.Error(text.String())
	}
	text.Reset()
	if err := Report(t.Context(), "interp", &text); err == nil || !strings.Contains(text.String(), "there is no trace") {
		t.Errorf("%v: %s", err, text.String())
	}
}

var _ port.Port = (*lacking)(nil)

// A Jetson is opened by name only, until somebody has run it.
func TestTegraByName(t *testing.T) {
	seen := 0
	for _, f := range families {
		if strings.HasPrefix(f.name, "tegra") {
			seen++
			if !f.byName {
				t.Errorf("%s may be the default", f.name)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d families, want tegra and tegra:emu", seen)
	}
}
