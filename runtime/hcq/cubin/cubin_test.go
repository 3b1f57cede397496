package cubin

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tgc/internal/cudatools"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What a launch needs is found by symbol, and addresses are filled in as both toolkits
// ask for it.
func TestRead(t *testing.T) {
	c, err := Read(sample().bytes())
	check(t, err)
	k, err := c.Kernel("k")
	check(t, err)
	if k.Registers != 10 || k.Barriers != 2 || k.StackBytes != 24 || k.SharedBytes != 96 || k.MaxThreads != [3]int{64, 2, 1} || k.ParamBase != 0x160 || k.ParamBytes != 16 ||
		len(k.Bank0) != 0x170 || k.Code.Bytes != 256 || k.Code.Offset%128 != 0 {
		t.Errorf("%+v", k)
	}
	if want := []Param{{0, 0, 8}, {1, 8, 8}}; !reflect.DeepEqual(k.Params, want) {
		t.Errorf("parameters %v, want %v", k.Params, want)
	}
	if len(k.Banks) != 2 || k.Banks[0].Number != 4 || k.Banks[1].Number != 2 || k.Banks[1].Bytes != 112 {
		t.Fatalf("banks %v", k.Banks)
	}
	const base = 0xff_8000_1000
	image, err := c.Image(base)
	check(t, err)
	at := func(p int) uint64 { return binary.LittleEndian.Uint64(image[p:]) }
	table := at(k.Banks[0].Offset + 8)
	low, high := uint32(at(k.Code.Offset+0x14)), uint32(at(k.Code.Offset+0x24))
	if table != uint64(high)<<32|uint64(low) || table-64 < base || table-64+80 > base+uint64(len(image)) || !bytes.Equal(image[table-64-base:][:80], bytes.Repeat([]byte{7}, 80)) {
		t.Errorf("the table is at %#x by bank 4, %08x%08x by the code", table, high, low)
	}
	if at(k.Banks[0].Offset) != 0 || image[k.Banks[1].Offset+111] != 9 {
		t.Error("the banks hold something else")
	}
	if c.Size() != len(image) {
		t.Errorf("%d bytes, want %d", len(image), c.Size())
	}
	if _, err := c.Image(base + 128); err == nil {
		t.Error("an image at 128")
	}
	if _, err := c.Kernel("l"); err == nil {
		t.Error("a kernel that is not there")
	}
}

// What is not known is named.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *written)
		want   string
	}{
		"section":           {func(w *written) { w.add(section{name: ".nv.other", kind: kindBits, flags: flagAlloc, data: []byte{1}}) }, `section ".nv.other": nothing is known of it`},
		"bank":              {func(w *written) { w.sections[3].name = ".nv.constant8.k" }, "bank 8"},
		"bank of another":   {func(w *written) { w.sections[3].name = ".nv.constant2.l" }, `no kernel "l"`},
		"bank twice":        {func(w *written) { w.sections[3].name = ".nv.constant4.k" }, "bank 4 twice"},
		"relocation":        {func(w *written) { copy(w.sections[9].data[8:], []byte{0x3b}) }, "relocation of kind 0x3b at 0x10"},
		"addend":            {func(w *written) { w.sections[2].data[8] = 1 }, "relocation at 0x8 with an addend"},
		"relocation past":   {func(w *written) { w.sections[9].data[0] = 0xfc }, "relocation at 0xfc of 256 bytes"},
		"symbol":            {func(w *written) { w.sections[8].data[12] = 9 }, "symbol 9 of 3"},
		"symbol elsewhere":  {func(w *written) { w.symbols[1].section = undefined }, `symbol "table" is in section 0`},
		"symbol past":       {func(w *written) { w.symbols[1].value = 81 }, "of a section of 80 bytes"},
		"bank 0 relocated":  {func(w *written) { w.sections[8].info = 8 }, "relocations of .nv.constant0.k"},
		"no registers":      {func(w *written) { w.sections[6].data = nil }, "no REGCOUNT"},
		"other registers":   {func(w *written) { w.sections[0].info = 11<<registerShift | 2 }, "REGCOUNT 10, and 11 in the header"},
		"parameters":        {func(w *written) { w.sections[4].data = make([]byte, 0x16f) }, "16 bytes of parameters at 0x160 of a bank 0 of 367"},
		"parameter":         {func(w *written) { copy(w.sections[7].data[22:], []byte{12}) }, "8 bytes at 12 of 16"},
		"kernel":            {func(w *written) { w.symbols[2].info = 1 }, "no kernel"},
		"kernel elsewhere":  {func(w *written) { w.symbols[2].section = sampleTable }, `kernel "k" lies at 0x0 of section ".nv.global.init"`},
		"address":           {func(w *written) { w.sections[0].address = 128 }, "an address, 0x80"},
		"alignment":         {func(w *written) { w.sections[0].align = 192 }, "aligned to 192"},
		"record":            {func(w *written) { w.sections[7].data = w.sections[7].data[:9] }, ".nv.info.k: record at 0x0: 8 bytes, 5 are left"},
		"format of record":  {func(w *written) { w.sections[6].data[0] = 5 }, "format 5 of attribute 0x2f"},
		"words of a record": {func(w *written) { w.sections[6].data = record(attributeRegisters, 2) }, "REGCOUNT: 4 bytes, want 8"},
		"image": {func(w *written) {
			w.add(section{name: ".nv.global", kind: kindNoBits, flags: flagAlloc, size: mostImage})
		}, "an image of more than"},
	} {
		w := sample()
		c.change(w)
		if _, err := Read(w.bytes()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	whole := sample().bytes()
	for n := range len(whole) {
		if _, err := Read(whole[:n]); err == nil {
			t.Fatalf("the first %d bytes of %d are read", n, len(whole))
		}
	}
	w := sample()
	w.sections[7].data = append(w.sections[7].data, record(0x77, 1)...)
	c, err := Read(w.bytes())
	check(t, err)
	if c.UnknownAttributes[0x77] != 1 || len(c.UnknownAttributes) != 1 {
		t.Errorf("unknown attributes %v", c.UnknownAttributes)
	}
}

// kernelPTX has what kernels of ours have: two tables and room, doubles, shared memory, a
// barrier, local memory, a division with its subroutine.
const kernelPTX = `.version 7.4
.target sm_87
.address_size 64
.global .align 64 .b8 first[16] = {1, 2, 3, 4};
.global .align 64 .b8 second[128] = {131, 200};
.global .align 8 .b8 room[64];
.visible .entry busy(.param .u64 to, .param .u64 n, .param .u32 m)
.maxntid 64, 1, 1
{
	.reg .b64 %d<9>; .reg .b32 %r<9>; .reg .f32 %f<4>; .reg .f64 %x<4>;
	.shared .align 16 .b8 own[96];
	.local .align 16 .b8 array[80];
	ld.param.u64 %d0, [to];
	ld.param.u64 %d6, [n];
	ld.param.u32 %r6, [m];
	mov.u64 %d1, second;
	ld.global.u32 %r1, [%d1+40];
	mov.u64 %d2, first;
	ld.global.u32 %r2, [%d2+8];
	mov.u64 %d3, room;
	ld.global.u32 %r3, [%d3+4];
	mov.u32 %r4, %tid.x;
	mul.wide.u32 %d4, %r4, 8;
	mov.u64 %d5, array;
	add.u64 %d5, %d5, %d4;
	st.local.u64 [%d5], %d3;
	ld.local.u64 %d7, [array + 16];
	st.shared.u32 [own], %r6;
	bar.sync 0;
	ld.shared.u32 %r5, [own + 4];
	cvt.rn.f64.u32 %x0, %r1;
	fma.rn.f64 %x1, %x0, 0d3FE0123456789ABC, 0d40091EB851EB851F;
	fma.rn.f64 %x1, %x1, 0d3FF0123456789ABD, %x0;
	cvt.rn.f32.u32 %f0, %r2;
	cvt.rn.f32.u32 %f1, %r5;
	div.rn.f32 %f2, %f0, %f1;
	st.global.f64 [%d0], %x1;
	st.global.u64 [%d0+8], %d7;
	st.global.u32 [%d0+16], %r3;
	st.global.f32 [%d0+20], %f2;
	st.global.u64 [%d0+24], %d6;
	ret;
}
`

// Machine code of real assemblers is read: of both toolkits' ptxas, of libnvJitLink, made of
// kernelPTX (testdata), and of the ptxas that is here. What its disassembler sees of constant
// banks lies within those that the loader finds.
func TestOfAssemblers(t *testing.T) {
	tools := cudatools.FromEnvironment()
	files, err := filepath.Glob("testdata/*.cubin")
	check(t, err)
	if len(files) != 3 {
		t.Errorf("files %v", files)
	}
	machine := make(map[string][]byte)
	for _, file := range files {
		machine[file], err = os.ReadFile(file)
		check(t, err)
	}
	if tools.PtxasPath != "" {
		made, err := tools.Ptxas(context.Background(), kernelPTX, "sm_87")
		check(t, err)
		machine["ptxas"] = made.Cubin
		if c, err := Read(made.Cubin); err != nil || c.Kernels[0].Registers != made.Registers {
			t.Errorf("%v: registers, ptxas says %d", err, made.Registers)
		}
	}
	for name, b := range machine {
		t.Run(name, func(t *testing.T) { checkBusy(t, tools, b) })
	}
}

// libnvJitLink calls a subroutine of another section by its address, and passes the address
// to come back to: as nvdisasm lists them.
func TestCall(t *testing.T) {
	b, err := os.ReadFile("testdata/busy-nvjitlink-12.4.cubin")
	check(t, err)
	c, err := Read(b)
	check(t, err)
	const base = 0xff_8000_1000
	image, err := c.Image(base)
	check(t, err)
	code, subroutine := c.Kernels[0].Code.Offset, 15
	at := func(p int) uint64 { return binary.LittleEndian.Uint64(image[code+p:]) }
	if got := at(0x3f4) & callBits; got != base+uint64(c.places[subroutine]) {
		t.Errorf("the call at 0x3f0 goes to %#x, want %#x", got, base+c.places[subroutine])
	}
	if back := at(0x3d4)&0xffffffff | at(0x3e4)<<32; back != base+uint64(code)+0x400 {
		t.Errorf("it comes back to %#x, want %#x", back, base+code+0x400)
	}
}

// checkBusy checks what is read of the machine code of kernelPTX.
func checkBusy(t *testing.T, tools cudatools.Tools, machine []byte) {
	c, err := Read(machine)
	check(t, err)
	t.Logf("unknown attributes %v", c.UnknownAttributes) // of a later ptxas than 12.4
	k, err := c.Kernel("busy")
	check(t, err)
	if k.SharedBytes != 96 || k.Barriers != 1 || k.StackBytes < 80 || k.MaxThreads[0] != 64 || k.ParamBase != 0x160 {
		t.Errorf("%+v", k)
	}
	if want := []Param{{0, 0, 8}, {1, 8, 8}, {2, 16, 4}}; !reflect.DeepEqual(k.Params, want) || k.ParamBytes != 20 {
		t.Errorf("parameters %v of %d bytes, want %v", k.Params, k.ParamBytes, want)
	}
	const base = 0xff_8000_1000
	image, err := c.Image(base)
	check(t, err)
	if !bytes.Contains(image, []byte{131, 200, 0, 0}) {
		t.Error("the table is not in the image")
	}
	changed := 0
	other, err := c.Image(base + 0x5_0000_0000)
	check(t, err)
	for i := range image {
		if image[i] != other[i] {
			changed++
		}
	}
	if changed == 0 {
		t.Error("no address was filled in")
	}
	if tools.NvdisasmPath != "" {
		checkBanks(t, tools, machine, k)
	}
}

// constantAccess is c[bank][offset] in a listing.
var constantAccess = regexp.MustCompile(`c\[0x([0-9a-f]+)\]\s*\[0x([0-9a-f]+)\]`)

func checkBanks(t *testing.T, tools cudatools.Tools, cubin []byte, k *Kernel) {
	t.Helper()
	listing, err := tools.Nvdisasm(context.Background(), cubin)
	check(t, err)
	seen := make(map[int]bool)
	for _, m := range constantAccess.FindAllStringSubmatch(listing.Text, -1) {
		number, _ := strconv.ParseInt(m[1], 16, 32)
		offset, _ := strconv.ParseInt(m[2], 16, 32)
		size := 0
		if number == 0 {
			size = len(k.Bank0)
		}
		for _, b := range k.Banks {
			if b.Number == int(number) {
				size = b.Bytes
			}
		}
		seen[int(number)] = true
		if int(offset)+4 > size {
			t.Errorf("%s: bank %d has %d bytes", m[0], number, size)
		}
	}
	if !seen[0] || slices.ContainsFunc(k.Banks, func(b Bank) bool { return !seen[b.Number] }) {
		t.Errorf("banks %v are read, %v are there", seen, k.Banks)
	}
}

// Any bytes are an error or a file that can be laid out.
func FuzzRead(f *testing.F) {
	f.Add(sample().bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Read(b)
		if err != nil || c.Size() > 1<<20 {
			return
		}
		if _, err := c.Image(0xff_0000_0000); err != nil {
			t.Fatal(err)
		}
		for _, k := range c.Kernels {
			if k.Code.Offset+k.Code.Bytes > c.Size() {
				t.Fatalf("code of %q at %+v of an image of %d bytes", k.Name, k.Code, c.Size())
			}
		}
	})
}
