package check

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"tgc/runtime/hcq/trace"
)

func recorded(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/recorded.trace")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// replay checks a text and prints what differs, without line numbers.
func replay(t *testing.T, text string) string {
	t.Helper()
	events, err := trace.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, d := range Trace(events) {
		parts = append(parts, fmt.Sprintf("%s %s", d.Kind, d.Code))
	}
	return strings.Join(parts, ", ")
}

// What ran on a board is accepted: descriptors, addresses, the semaphore, the launch.
func TestRecorded(t *testing.T) {
	for _, name := range []string{"recorded", "ga106"} {
		text, err := os.ReadFile("testdata/" + name + ".trace")
		if err != nil {
			t.Fatal(err)
		}
		events, err := trace.Parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range Trace(events) {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// A fixed mapping in a window is accepted by the kernel driver in silence; the machine
// says so at the first launch. Elsewhere in a reserved range it is what it should be.
func TestMappedWindow(t *testing.T) {
	text, err := os.ReadFile("testdata/ga106.trace")
	if err != nil {
		t.Fatal(err)
	}
	for window, want := range map[string]string{"02": "", "fc": "", "fe": "window fe00000000", "ff": "window ff00000000"} {
		// The mapping moves, and with it the words and the descriptor.
		var lines []string
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "ioctl 6 ") {
				line = strings.ReplaceAll(line, "0000000002000000", "00000000"+window+"000000")
			}
			lines = append(lines, strings.NewReplacer("00d0000002", "00d00000"+window, "c0000002", "c00000"+window).Replace(line))
		}
		if got := replay(t, strings.Join(lines, "")); want != "" && !strings.Contains(got, want) || want == "" && strings.Contains(got, "window") {
			t.Errorf("mapped at %s00000000: %q, want %q", window, got, want)
		}
	}
}

// Each change of the recorded trace is found, as what it is.
func TestChanged(t *testing.T) {
	const (
		windows  = "a8200220fe00000000000000ec210220fd00000000000000" // the two methods in the launch's words
		launch   = "ad20012080a0ffff"
		action   = "b020012009000000"
		signal   = "1700052000a0ffff"
		version  = "30002000"
		lastRing = "doorbell doorbell+90 1ff\nwait done+0 geq dead\n"
	)
	for name, c := range map[string]struct{ old, new, want string }{
		"no windows":           {windows, strings.Repeat("0", len(windows)), "sked 01000000, wait never, load bytes"},
		"one window":           {"ec210220fd00000000000000", strings.Repeat("0", 24), "sked 01000000, wait never, load bytes"},
		"equal windows":        {"a8200220fe", "a8200220fd", "sked 01000000, wait never, load bytes"},
		"version of the QMD":   {version, "33002000", "sked 01000000, wait never, load bytes"},
		"no doorbell":          {lastRing, "wait done+0 geq dead\n", "wait never, load bytes"},
		"doorbell of another":  {lastRing, strings.Replace(lastRing, "1ff", "1fe", 1), "order token, wait never, load bytes"},
		"no barrier":           {"publish\nstore userd+8c 02000000\npublish\n", "publish\nstore userd+8c 02000000\n", "stale GPPut, wait never, load bytes"},
		"no barrier at all":    {"publish\nstore userd+8c 02000000\npublish\n", "store userd+8c 02000000\n", "stale GPPut, wait never, load bytes"},
		"pointer past the end": {"store userd+8c 02000000", "store userd+8c 00040000", "pbdma 14, wait never, load bytes"},
		"length of the entry":  {"0090a0ffff6e0000", "0090a0ffff6a0000", "pbdma 30, wait never, load bytes"},
		"address of the entry": {"0090a0ffff6e0000", "00b0a0ffff6e0000", "mmu ffffa0b000, wait never, load bytes"},
		"bits of the entry":    {"0090a0ffff6e0000", "0190a0ffff6e0000", "pbdma 15, wait never, load bytes"},
		"opcode":               {launch, "ad20014080a0ffff", "pbdma 18, wait never, load bytes"},
		"method":               {launch, "af20012080a0ffff", "method 2bc, wait never, load bytes"},
		"class":                {"00200120c0c70000", "00200120c0c90000", "method 0, wait never, load bytes"},
		"action":               {action, "b020012004000000", "method 2c0, wait never, load bytes"},
		"no launch":            {action, "b020012000000000", ""},
		"QMD elsewhere":        {launch, "ad200120a0a0ffff", "mmu ffffa0a000, wait never, load bytes"},
		"place of the signal":  {"170005200070a0ffff000000adde", "170005200470a0ffff000000adde", "pbdma 25, wait never, load bytes"},
		"no registers":         {"01101200", "01001200", "sked 00002000, wait never, load bytes"},
		"few registers":        {"01101200", "010f1200", "sm d, wait never, load bytes"},
		"no bank":              {"01101200", "00101200", "sm 12, wait never, load bytes"},
		"small bank":           {"0060a0ffff000408", "0060a0ffff00b400", "sm 12, wait never, load bytes"},
		"bank elsewhere":       {"0060a0ffff000408", "00c0a0ffff000408", "mmu ffffa0c000, wait never, load bytes"},
		"program elsewhere":    {"8045a0ffff000000", "4045a0ffff000000", "sked 00100000, wait never, load bytes"},
		"no threads":           {"30002000" + "01000100", "30002000" + "00000100", "sked 00800000, wait never, load bytes"},
		"many threads":         {"30002000" + "01000100", "30002000" + "40000100", "sked 00040000, wait never, load bytes"},
		"no barrier of blocks": {"01101200000000000000000000000008", "01101200000000000000000000000000", "sm b, wait never, load bytes"},
		"configuration":        {"00042434", "00042c34", "sked 02000000, wait never, load bytes"},
		"small configuration":  {"00042434", "00842434", "sked 02000000, wait never, load bytes"},
		"shared memory":        {"00042434", "00942534", "sked 00200000, wait never, load bytes"},
		"an address":           {"0000000000a0a0ffff000000", "", ""},
		"another address":      {"000000000020a0ffff000000", "000000000030a0ffff000000", "ioctl result"},
		"nothing at the end":   {"close 4\n", "", ""},
		"a bad request":        {"ioctl a 40084877 0100000000000000 = 0\n", "", "ioctl EINVAL"},
		"unknown request":      {"ioctl a 40084877", "ioctl a 40084878", "ioctl ENOTTY"},
		"refused before":       {"ioctl a 40084877 0100000000000000 = 0\n", "ioctl a 40084877 0500000000000000 = EINVAL\nioctl a 40084877 0100000000000000 = 0\n", "ioctl EINVAL"},
		"succeeds here":        {"ioctl a 40084877 0100000000000000 = 0\n", "ioctl a 40084877 0100000000000000 = EINVAL\n", "ioctl 0"},
		"freed twice":          {"ioctl 4 4e04 =80000001 = 0\n", "ioctl 4 4e04 =80000001 = 0\nioctl 4 4e04 =80000001 = 0\n", "leak free"},
		"two doorbells":        {"mmap 5 10000 = doorbell\n", "mmap 5 10000 = doorbell\nmmap 5 1000 = other\n", "ioctl EBUSY"},
		"a far store":          {"store push+0", "store push+fff", "store mapping"},
		"another value":        {"load done+0 = adde", "load done+0 = adce", "load bytes"},
	} {
		text := recorded(t)
		if strings.Count(text, c.old) != 1 && c.want != "" {
			t.Errorf("%s: %q is there %d times", name, c.old, strings.Count(text, c.old))
			continue
		}
		got := replay(t, strings.Replace(text, c.old, c.new, 1))
		if got != c.want && !strings.HasPrefix(got, c.want+",") || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Any trace ends with a list of what differs.
func FuzzTrace(f *testing.F) {
	text, err := os.ReadFile("testdata/recorded.trace")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Fuzz(func(t *testing.T, text string) {
		if events, err := trace.Parse(text); err == nil {
			Trace(events)
		}
	})
}
