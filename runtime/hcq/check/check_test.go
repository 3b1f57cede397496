package check

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"tgc/runtime/hcq/emu"
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
	for _, name := range []string{"recorded", "ga106", "copy"} {
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

// Each change of the words of a copy is found, as what it is.
func TestChangedCopy(t *testing.T) {
	text, err := os.ReadFile("testdata/copy.trace")
	if err != nil {
		t.Fatal(err)
	}
	const (
		object    = "00800120b5c70000"
		offsets   = "0081042002000000" + "00c00000" + "0200000000e10000"
		length    = "0681012010000000"
		transfer  = "c080012082010000"
		semaphore = "90800320" + "0200000000f00000efbe0000"
		signal    = "c080012014000000"
		nothing   = "0000000000000000"
	)
	for name, c := range map[string]struct{ old, new, want string }{
		"no object":            {object, nothing, "method 400, load bytes"},
		"the compute class":    {object, "00800120c0c70000", "method 0, load bytes"},
		"of the compute queue": {object, "00200120b5c70000", "method 0, load bytes"},
		"source elsewhere":     {offsets, strings.Replace(offsets, "00c00000", "00c00200", 1), "mmu 20000e100, load bytes"},
		"target elsewhere":     {offsets, strings.Replace(offsets, "00e10000", "00e10200", 1), "mmu 20002e100, load bytes"},
		"far":                  {offsets, strings.Replace(offsets, "2002000000", "2000000200", 1), "method 400, load bytes"},
		"a byte before":        {offsets, strings.Replace(offsets, "00c00000", "ffbf0000", 1), "load bytes"},
		"half of it":           {length, "0681012008000000", "load bytes"},
		"nothing":              {length, "0681012000000000", "method 300, load bytes"},
		"beyond the end":       {length, "0681012000000100", "mmu 20000e100, load bytes"},
		"pipelined":            {transfer, "c080012081010000", "method 300, load bytes"},
		"no transfer":          {transfer, "c080012080010000", "load bytes"},
		"tiles":                {transfer, "c080012002010000", "method 300, load bytes"},
		"several lines":        {transfer, "c080012082030000", "method 300, load bytes"},
		"physical addresses":   {transfer, "c080012082110000", "method 300, load bytes"},
		"signal without flush": {signal, "c080012010000000", "order flush"},
		"flushed before":       {transfer + semaphore + signal, "c080012086010000" + semaphore + "c080012010000000", ""},
		"no signal":            {signal, "c080012004000000", "load bytes"},
		"one word":             {signal, "c08001200c000000", ""},
		"with the transfer":    {transfer + semaphore + signal, semaphore + "c080012096010000" + nothing, ""},
		"no such semaphore":    {signal, "c08001201c000000", "method 300, load bytes"},
		"semaphore elsewhere":  {semaphore, "908003200200000000f00200efbe0000", "mmu 20002f000, load bytes"},
		"semaphore at 8":       {semaphore, "908003200200000008f00000efbe0000", "mmu 20000f008, load bytes"},
		"unknown method":       {semaphore, "98800320" + semaphore[8:], "method 260, load bytes"},
		"subchannel":           {length, "0661012010000000", "method 418, load bytes"},
		"the other's doorbell": {"doorbell doorbell+90 1fe", "doorbell doorbell+90 1ff", "order token, load bytes"},
	} {
		if strings.Count(string(text), c.old) != 1 {
			t.Errorf("%s: %q is there %d times", name, c.old, strings.Count(string(text), c.old))
			continue
		}
		got := replay(t, strings.Replace(string(text), c.old, c.new, 1))
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
	copied, err := os.ReadFile("testdata/copy.trace")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(copied))
	f.Fuzz(func(t *testing.T, text string) {
		if events, err := trace.Parse(text); err == nil {
			replayOn(emu.NewReplay(1<<30), events) // gigabytes that were used before are cleared: seconds for one text
		}
	})
}
