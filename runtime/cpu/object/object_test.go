package object

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"flag"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"tgc/runtime/cpu/llvmc"
)

var update = flag.Bool("update", false, "rewrite testdata/*.o with this machine's LLVM")

// targets are the machines that testdata holds an object for.
var targets = map[string]llvmc.Options{
	"amd64": {Triple: "x86_64-pc-linux-gnu", CPU: "x86-64", Features: llvmc.NoFeatures, Workers: 1},
	"arm64": {Triple: "aarch64-unknown-linux-gnu", CPU: "generic", Features: llvmc.NoFeatures, Workers: 1},
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// compile compiles IR without passes, so that calls and tables stay.
func compile(t testing.TB, options llvmc.Options, ir string) []byte {
	t.Helper()
	options.Passes = llvmc.NoPasses
	c, err := llvmc.Start(t.Context(), options)
	if errors.Is(err, llvmc.ErrNoLLVM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	file, err := c.Compile(t.Context(), []byte(ir))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// stored reads the object for a machine, which needs no LLVM.
func stored(t testing.TB, arch string) []byte {
	t.Helper()
	path := "testdata/sections_" + arch + ".o"
	if *update {
		if err := os.WriteFile(path, compile(t, targets[arch], sectionsIR(t)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func sectionsIR(t testing.TB) string {
	t.Helper()
	ir, err := os.ReadFile("testdata/sections.ll")
	if err != nil {
		t.Fatal(err)
	}
	return string(ir)
}

func load(t *testing.T, file []byte) *Object {
	t.Helper()
	o, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// call calls a function of the object with integers.
func call(t *testing.T, o *Object, name string, args ...uintptr) int64 {
	t.Helper()
	fn, ok := o.Entry(name)
	if !ok {
		t.Fatalf("no function %q", name)
	}
	r, _, _ := purego.SyscallN(fn, args...)
	return int64(r)
}

// checkSections runs everything in testdata/sections.ll.
func checkSections(t *testing.T, o *Object) {
	for _, test := range []struct {
		name string
		args []uintptr
		want int64
	}{
		{"twice", []uintptr{21}, 42},
		{"lookup", []uintptr{2}, 30},
		{"lane_sum", []uintptr{5}, 125},
		{"count", []uintptr{1}, 101},
		{"count", []uintptr{2}, 103},
		{"zeroed", []uintptr{4095}, 0},
		{"zeroed", []uintptr{4095}, 7},
		{"indirect", []uintptr{0, 8}, 16},
		{"indirect", []uintptr{1, 8}, 24},
		{"choose", []uintptr{0}, 200},
		{"choose", []uintptr{1}, 21},
		{"choose", []uintptr{2}, 103},
		{"choose", []uintptr{3}, 40},
		{"choose", []uintptr{4}, 55},
		{"choose", []uintptr{5}, -1},
	} {
		if got := call(t, o, test.name, test.args...); got != test.want {
			t.Errorf("%s%v: got %d, want %d", test.name, test.args, got, test.want)
		}
	}
	from, to := make([]byte, 3000), make([]byte, 3001)
	address := func(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
	call(t, o, "fill", address(from), 0xab, uintptr(len(from)))
	call(t, o, "copy", address(to), address(from), uintptr(len(from)))
	if want := strings.Repeat("\xab", 3000) + "\x00"; string(to) != want {
		t.Error("memset or memcpy did not fill 3000 bytes")
	}
	libc, err := resolveExtern("memmove")
	if err != nil {
		t.Fatal(err)
	}
	if got := call(t, o, "address_of_memmove"); uint64(got) != libc {
		t.Errorf("address through the GOT: got %#x, want %#x", got, libc)
	}
	runtime.KeepAlive(from)
}

func TestStoredObject(t *testing.T) {
	if _, ok := targets[runtime.GOARCH]; !ok {
		t.Skipf("no object for %s", runtime.GOARCH)
	}
	checkSections(t, load(t, stored(t, runtime.GOARCH)))
}

func TestCompiledObject(t *testing.T) {
	checkSections(t, load(t, compile(t, llvmc.Options{Workers: 1}, sectionsIR(t))))
}

func TestSymbolize(t *testing.T) {
	if _, ok := targets[runtime.GOARCH]; !ok {
		t.Skipf("no object for %s", runtime.GOARCH)
	}
	o := load(t, stored(t, runtime.GOARCH))
	start, end := o.Text()
	for _, fn := range o.Functions() {
		if fn.Addr < start || fn.Addr >= end {
			t.Errorf("%s at %#x is outside the code %#x to %#x", fn.Name, fn.Addr, start, end)
		}
		name, offset, ok := o.Lookup(fn.Addr + fn.Size - 1)
		if !ok || name != fn.Name || offset != fn.Size-1 {
			t.Errorf("last byte of %s: got %s+%d, %v", fn.Name, name, offset, ok)
		}
	}
	if name, _, ok := o.Lookup(end); ok {
		t.Errorf("the end of the code is in %s", name)
	}
	if _, ok := o.Entry("table"); ok {
		t.Error("private data has an entry")
	}
}

func TestUndefinedSymbols(t *testing.T) {
	for name, ir := range map[string]string{
		"function":  "declare float @expf(float)\ndefine float @f(float %x) {\n %y = call float @expf(float %x)\n ret float %y\n}",
		"intrinsic": "declare i32 @llvm.no.such.thing(i32)\ndefine i32 @f(i32 %x) {\n %y = call i32 @llvm.no.such.thing(i32 %x)\n ret i32 %y\n}",
		"data":      "@g = external global i32\ndefine i32 @f() {\n %y = load i32, ptr @g\n ret i32 %y\n}",
	} {
		t.Run(name, func(t *testing.T) {
			file := compile(t, llvmc.Options{Workers: 1}, ir)
			if _, err := Load(file); err == nil || !strings.Contains(err.Error(), "undefined symbol") {
				t.Fatalf("got %v, want an undefined symbol", err)
			}
		})
	}
}

func TestWrongMachine(t *testing.T) {
	for arch := range targets {
		if arch != runtime.GOARCH {
			if _, err := Load(stored(t, arch)); err == nil || !strings.Contains(err.Error(), "machine") {
				t.Errorf("%s: got %v, want the wrong machine", arch, err)
			}
		}
	}
}

// heap links into ordinary memory, for what is not executed.
func heap(size uint64) ([]byte, error) { return make([]byte, size), nil }

// TestEachMachineLinks relocates both machines' objects. That code of another
// machine is right is checked by field in TestAarch64Fields.
func TestEachMachineLinks(t *testing.T) {
	for arch := range targets {
		img, err := link(stored(t, arch), machines[arch], heap)
		if err != nil {
			t.Errorf("%s: %v", arch, err)
			continue
		}
		if got := len(img.functions()); got != 11 {
			t.Errorf("%s: %d functions, want 11", arch, got)
		}
		if len(img.stubs) != 2 || len(img.got) != 1 {
			t.Errorf("%s: %d stubs and %d GOT slots, want 2 and 1", arch, len(img.stubs), len(img.got))
		}
	}
}

// TestAarch64Fields compares patched instructions with an assembler's.
func TestAarch64Fields(t *testing.T) {
	for _, test := range []struct {
		name  string
		field relocField
		insn  uint32
		value int64
		want  uint32
	}{
		{"bl .+0x1000", fieldBranch, 0x94000000, 0x1000, 0x94000400},
		{"b .-4", fieldBranch, 0x14000000, -4, 0x17ffffff},
		{"b.ne .+8", fieldCond, 0x54000001, 8, 0x54000041},
		{"adr x1, .+5", fieldAdr, 0x10000001, 5, 0x30000021},
		{"adrp x0, 3 pages on", fieldAdrp, 0x90000000, 3, 0xf0000000},
		{"adrp x0, 1 page back", fieldAdrp, 0x90000000, -1, 0xf0ffffe0},
		{"add x0, x0, #0xabc", fieldImm0, 0x91000000, 0xabc, 0x912af000},
		{"ldr x0, [x0, #0x18]", fieldImm3, 0xf9400000, 0x18, 0xf9400c00},
		{"ldr q0, [x0, #0x40]", fieldImm4, 0x3dc00000, 0x40, 0x3dc01000},
	} {
		p := binary.LittleEndian.AppendUint32(nil, test.insn)
		if err := test.field.store(p, test.value); err != nil {
			t.Errorf("%s: %v", test.name, err)
		} else if got := binary.LittleEndian.Uint32(p); got != test.want {
			t.Errorf("%s: got %#x, want %#x", test.name, got, test.want)
		}
	}
	for name, bad := range map[string]struct {
		field relocField
		value int64
	}{
		"far branch":      {fieldBranch, 1 << 27},
		"odd branch":      {fieldBranch, 2},
		"far page":        {fieldAdrp, 1 << 20},
		"unaligned load":  {fieldImm3, 4},
		"far word":        {fieldWord32S, 1 << 31},
		"negative u32":    {fieldWord32, -1},
		"far condition":   {fieldCond, -1<<20 - 4},
		"unaligned 16":    {fieldImm4, 8},
		"far adr":         {fieldAdr, 1 << 20},
		"unsigned 33 bit": {fieldWord32, 1 << 32},
	} {
		if err := bad.field.store(make([]byte, 8), bad.value); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestDamagedObject changes every byte of the headers and tables in turn.
func TestDamagedObject(t *testing.T) {
	for arch := range targets {
		file := stored(t, arch)
		for i := range file {
			old := file[i]
			for _, value := range []byte{old ^ 1, old ^ 0x80, 0xff} {
				file[i] = value
				linkMustNotPanic(file, machines[arch])
			}
			file[i] = old
		}
		for n := 0; n < len(file); n += 7 {
			linkMustNotPanic(file[:n], machines[arch])
		}
	}
}

// linkMustNotPanic links what may be damaged; small limits keep a claim of
// much memory cheap.
func linkMustNotPanic(file []byte, machine elf.Machine) {
	_, _ = link(file, machine, func(size uint64) ([]byte, error) {
		if size > 1<<20 {
			return nil, errors.New("too large for the test")
		}
		return make([]byte, size), nil
	})
}

func FuzzLink(f *testing.F) {
	for arch := range targets {
		f.Add(stored(f, arch))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, machine := range machines {
			linkMustNotPanic(file, machine)
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	if _, ok := targets[runtime.GOARCH]; !ok {
		b.Skipf("no object for %s", runtime.GOARCH)
	}
	file := stored(b, runtime.GOARCH)
	for b.Loop() {
		o, err := Load(file)
		if err != nil {
			b.Fatal(err)
		}
		if err := o.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
