package trace

import (
	"strings"
	"testing"
)

// sample is the contract's example, with the bytes that it leaves out.
const sample = `hcq-trace 1
open /dev/nvmap = 3
ioctl 3 c0084e00 0010000000000000 = 0 0010000001000080
ioctl 3 4e04 =80000001 = 0
ioctl 4 c0104705 48010000000000000000000000000000 = 0 48.. | 70010000..
ioctl 4 c0104705 48 = EINVAL
mmap 5 1000 = m1
mmap 5 100000 = EBUSY
store m1+40 20010020
publish
doorbell m0+90 1ff
wait m2+0 geq 42
load m2+0 = 4200..0000000000
munmap m1
close 5
open /dev/none = ENOENT
kernel ffffa04580 size=280 regs=10 barriers=1 shared=0 stack=0 bank0=168 bank2=70 name=k_add
gpu launch qmd=ffffa08000 grid=1,1,1 ...
`

func TestParse(t *testing.T) {
	events, err := Parse("# a comment\n" + strings.Replace(sample, " = 0 0010", "   = 0  0010", 1))
	if err != nil {
		t.Fatal(err)
	}
	if got := Print(events); got != sample {
		t.Errorf("%s\nwant %s", got, sample)
	}
	if e := events[1]; e.Line != 4 || e.FD != 3 || e.Request != 0xc0084e00 || len(e.Bytes) != 8 {
		t.Errorf("%+v", e)
	}
	if e := events[2]; !e.ByValue || e.Value != 0x80000001 {
		t.Errorf("%+v", e)
	}
	if p := events[11].Out; p.Match([]byte{0x42, 0, 7, 0, 0, 0, 0, 0}) != -1 || p.Match([]byte{0x42, 0, 7, 0, 1, 0, 0, 0}) != 4 || p.Match([]byte{0x42, 0}) != 2 ||
		p.Match(make([]byte, 9)) != 0 {
		t.Errorf("%+v", p)
	}
	if p := events[3].Pointee; p.Match([]byte{0x70, 1, 0, 0, 9, 9, 9}) != -1 {
		t.Error("the bytes after a final .. are anything")
	}
	if v, ok := events[1].Out.Word(4); v != 0x80000001 || !ok {
		t.Errorf("%#x, %v", v, ok)
	}
	if _, ok := events[11].Out.Word(0); ok {
		t.Error("a word of unknown bytes")
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                          `no line "hcq-trace 1"`,
		"open x = 3":                                `line 1: "open x = 3", want "hcq-trace 1"`,
		"hcq-trace 1\nopen x 3":                     `line 2: open: "=" is missing`,
		"hcq-trace 1\nopen x = 3 4":                 `"4" after the end`,
		"hcq-trace 1\nioctl 3 zz 00 = 0":            "request \"zz\"",
		"hcq-trace 1\nioctl 3 1 0 = 0":              "argument \"0\", want bytes",
		"hcq-trace 1\nioctl 3 1 00 = no":            `result "no"`,
		"hcq-trace 1\nioctl 3 1 00 = 0 0":           "half a byte",
		"hcq-trace 1\nioctl 3 1 00 = 0 |":           "pointee is missing",
		"hcq-trace 1\nmmap 3 " + "f0000000000 = m1": "a mapping of",
		"hcq-trace 1\nstore m1 00":                  "want NAME+OFFSET",
		"hcq-trace 1\nwait m1+0 eq 1":               `"geq" is missing`,
		"hcq-trace 1\nkernel 0 registers=1":         `"registers" is no key`,
		"hcq-trace 1\nrun":                          `"run" is no event`,
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// What is read can be written and read again.
func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Fuzz(func(t *testing.T, text string) {
		events, err := Parse(text)
		if err != nil {
			return
		}
		printed := Print(events)
		again, err := Parse(printed)
		if err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		if Print(again) != printed {
			t.Errorf("%s\nand then\n%s", printed, Print(again))
		}
	})
}
