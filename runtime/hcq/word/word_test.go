package word

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Headers as the class pages give them.
func TestHeaders(t *testing.T) {
	for want, send := range map[uint32]func(b *Builder){
		0x20012000: func(b *Builder) { b.Send(OnCompute, SetObject, 0xc7c0) },
		0x20018000: func(b *Builder) { b.header(opIncrease, OnCopy, "NOP", 1); b.Words[0] &^= 0xfff },
		0x20050017: func(b *Builder) { b.Release(0x100, 1, true) },
		0x20010008: func(b *Builder) { b.Send(OnHost, "NON_STALL_INTERRUPT", 0) },
		0x200220a8: func(b *Builder) { b.Send(OnCompute, SharedMemoryWindow, 0, 0) },
		0x200221ec: func(b *Builder) { b.Send(OnCompute, LocalMemoryWindow, 0, 0) },
		0x200221e4: func(b *Builder) { b.Send(OnCompute, LocalMemory, 0, 0) },
		0x200320b9: func(b *Builder) { b.Send(OnCompute, LocalMemoryNonThrottled, 0, 0, 0) },
		0x200125a6: func(b *Builder) { b.Send(OnCompute, InvalidateNoWFI, 0x1011) },
		0x20012087: func(b *Builder) { b.Send(OnCompute, InvalidateShaderCaches, 0x1011) },
		0x200120ad: func(b *Builder) { b.Launch(0x100, ActionPrefetchLaunch) },
		0x200120b0: func(b *Builder) { b.Send(OnCompute, SendSignalingPCAS2, 9) },
		0x800920b0: func(b *Builder) { b.Immediate(OnCompute, SendSignalingPCAS2, 9) },
		0x800320b0: func(b *Builder) { b.Immediate(OnCompute, SendSignalingPCAS2, 3) },
		0x80002044: func(b *Builder) { b.Immediate(OnCompute, WaitForIdle, 0) },
		0x20012044: func(b *Builder) { b.Send(OnCompute, WaitForIdle, 0) },
		0x200120a6: func(b *Builder) { b.Send(OnCompute, InvalidateSkedCaches, 0) },
		0x2001001e: func(b *Builder) { b.Send(OnHost, WFI, 0) },
		0x200426c0: func(b *Builder) { b.Send(OnCompute, ReportSemaphore, 0, 0, 0, 0) },
		0x20048100: func(b *Builder) { b.Send(OnCopy, OffsetInUpper, 0, 0, 0, 0) },
		0x20018106: func(b *Builder) { b.Send(OnCopy, LineLengthIn, 0) },
		0x200180c0: func(b *Builder) { b.Send(OnCopy, LaunchDMA, 0) },
		0x20038090: func(b *Builder) { b.Send(OnCopy, SetSemaphore, 0, 0, 0) },
	} {
		b := &Builder{}
		send(b)
		check(t, b.Err)
		if b.Words[0] != want {
			t.Errorf("header %08x, want %08x", b.Words[0], want)
		}
	}
}

func TestRingEntry(t *testing.T) {
	for _, c := range []struct {
		address uint64
		words   int
		want    uint64
	}{
		{0x1000200040, 17, 0x0000461000200040},
		{0xffffa01000, 6, 0x00001affffa01000},
		{0xffffa09000, 27, 0x00006effffa09000},
	} {
		got, err := RingEntry(c.address, c.words)
		check(t, err)
		if got != c.want {
			t.Errorf("%d words at %#x: %016x, want %016x", c.words, c.address, got, c.want)
		}
	}
	for _, bad := range []struct {
		address uint64
		words   int
	}{{1 << 40, 1}, {0x1002, 1}, {0x1000, 0}, {0x1000, 1 << 21}} {
		if _, err := RingEntry(bad.address, bad.words); err == nil {
			t.Errorf("%d words at %#x: no error", bad.words, bad.address)
		}
	}
}

// recordedLaunch is the pushbuffer of the first launch that ran on a board.
const recordedLaunch = "20012000 c7c0 200220a8 fe 0 200221ec fd 0 200221e4 0 0 200320b9 0 0 100 20012087 1011 " +
	"200120ad ffffa080 200120b0 9 20050017 ffa07000 ff dead 0 1100001"

func hex(words []uint32) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = fmt.Sprintf("%x", w)
	}
	return strings.Join(parts, " ")
}

func TestRecordedSemaphore(t *testing.T) {
	b := &Builder{}
	b.Release(0xffffa00000, 0xdeadbeef42, true)
	check(t, b.Err)
	if got, want := hex(b.Words), "20050017 ffa00000 ff adbeef42 de 3100001"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	b = &Builder{}
	b.Acquire(0xffffa00000, 7)
	check(t, b.Err)
	if got, want := hex(b.Words), "20050017 ffa00000 ff 7 0 1000003"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestRecordedLaunch(t *testing.T) {
	b := &Builder{}
	b.Send(OnCompute, SetObject, b.Value(OnCompute, SetObject, Part{ClassID, 0xc7c0}))
	b.Send(OnCompute, SharedMemoryWindow, 0xfe, 0)
	b.Send(OnCompute, LocalMemoryWindow, 0xfd, 0)
	b.Send(OnCompute, LocalMemory, 0, 0)
	b.Send(OnCompute, LocalMemoryNonThrottled, 0, 0, b.Value(OnCompute, LocalMemoryNonThrottledC, Part{MaxSMCount, 0x100}))
	b.Send(OnCompute, InvalidateShaderCaches, b.Value(OnCompute, InvalidateShaderCaches, Part{Instruction, 1}, Part{Data, 1}, Part{Constant, 1}))
	b.Launch(0xffffa08000, ActionPrefetchLaunch)
	b.Release(0xffffa07000, 0xdead, false)
	check(t, b.Err)
	if got := hex(b.Words); got != recordedLaunch {
		t.Errorf("%s\nwant %s", got, recordedLaunch)
	}
}

// A copy as the class pages and others' queues have it, but for the flush, with which it is
// seen when a release of the channel says so; a semaphore of the copy engine itself is their
// other way.
func TestCopyWords(t *testing.T) {
	b := &Builder{}
	b.Send(OnCopy, SetObject, b.Value(OnCopy, SetObject, Part{NVClass, 0xc7b5}))
	b.Copy(0xffffa0c000, 0x20000e100, 0x10)
	b.Copy(0x1000, 0xffffffff00, MostCopied)
	check(t, b.Err)
	if got, want := hex(b.Words), "20018000 c7b5 20048100 ff ffa0c000 2 e100 20018106 10 200180c0 186 "+
		"20048100 0 1000 ff ffffff00 20018106 80000000 200180c0 186"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for name, want := range map[string]uint32{"transfer": 0x182, "semaphore": 0x14} {
		parts := map[string][]Part{
			"transfer":  {{DataTransferType, TransferInOrder}, {SrcMemoryLayout, LayoutPitch}, {DstMemoryLayout, LayoutPitch}},
			"semaphore": {{FlushEnable, 1}, {"SEMAPHORE_TYPE", 2}},
		}[name]
		b := &Builder{}
		if got := b.Value(OnCopy, LaunchDMA, parts...); got != want || b.Err != nil {
			t.Errorf("%s: %#x, want %#x, %v", name, got, want, b.Err)
		}
	}
}

// nonzero prints the words of a descriptor that are not zero.
func nonzero(words []uint32) string {
	var parts []string
	for i, w := range words {
		if w != 0 {
			parts = append(parts, fmt.Sprintf("%d:%x", i, w))
		}
	}
	return strings.Join(parts, " ")
}

// The descriptor of the launch above.
func TestRecordedQMD(t *testing.T) {
	g := Grid{
		Program: 0xffffa04580, ProgramBytes: 640, Blocks: [3]uint32{1, 1, 1}, Threads: [3]uint32{32, 1, 1}, Registers: 16, Barriers: 1,
		SharedBytes: 0x400, MinConfig: 9, TargetConfig: 9, MaxConfig: 26, SassVersion: 0x87, Banks: []Bank{{0, 0xffffa06000, 4096}},
	}
	words, err := g.QMD()
	check(t, err)
	want := "4:7f 5:bc000000 8:ffffa045 11:44010000 12:1 13:1 14:1 17:34240400 18:200030 19:10001 20:121001 23:8000000 " +
		"32:ffa06000 33:80400ff 48:ffa04580 49:ff 51:87000400"
	if got := nonzero(words); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// setting is an element of a field with its value.
type setting struct {
	name    Name
	element int
	value   uint64
}

func build(t *testing.T, l *Layout, settings []setting) string {
	t.Helper()
	words := make([]uint32, l.Words)
	for _, s := range settings {
		check(t, l.Set(words, s.name, s.element, s.value))
		if f, _ := l.Field(s.name); l.Get(words, f, s.element) != s.value {
			t.Errorf("%s(%d): %#x reads back as %#x", s.name, s.element, s.value, l.Get(words, f, s.element))
		}
	}
	return nonzero(words)
}

// Descriptors of other programs: computed from the bits by hand, and one that ran on a
// desktop GPU of the same class.
func TestQMDs(t *testing.T) {
	common := []setting{
		{QMDGroupID, 0, 0x3f}, {SMGlobalCachingEnable, 0, 1}, {InvalidateTextureHeader, 0, 1}, {InvalidateTextureSampler, 0, 1},
		{InvalidateTextureData, 0, 1}, {InvalidateShaderData, 0, 1}, {CWDMembarType, 0, 1}, {APIVisibleCallLimit, 0, 1}, {QMDMajorVersion, 0, 3},
	}
	golden := append(slices.Clone(common), []setting{
		{ProgramPrefetchAddrLower, 0, 0x10003001}, {SamplerIndex, 0, 1}, {CTARasterWidth, 0, 4}, {CTARasterHeight, 0, 2}, {CTARasterDepth, 0, 1},
		{SharedMemorySize, 0, 0x400}, {MinSMConfigSharedMemSize, 0, 9}, {MaxSMConfigSharedMemSize, 0, 0x1a}, {TargetSMConfigSharedMemSize, 0, 9},
		{CTAThreadDimension0, 0, 128}, {CTAThreadDimension1, 0, 1}, {CTAThreadDimension2, 0, 1}, {RegisterCountV, 0, 16}, {BarrierCount, 0, 1},
		{ConstantBufferValid, 0, 1}, {ConstantBufferInvalidate, 0, 1}, {ConstantBufferAddrLower, 0, 0x00400000}, {ConstantBufferAddrUpper, 0, 0x10},
		{ConstantBufferSizeShifted4, 0, 0x17}, {ProgramAddressLower, 0, 0x00300100}, {ProgramAddressUpper, 0, 0x10},
		{ShaderLocalMemoryHighSize, 0, 0x240}, {SassVersion, 0, 0x87}, {ProgramPrefetchSize, 0, 2},
	}...)
	if got, want := build(t, QMD3(), golden), "4:7f 5:3c000000 8:10003001 11:44010000 12:4 13:2 14:1 17:34240400 18:800030 19:10001 20:121001 "+
		"23:8000000 32:400000 33:bc0010 48:300100 49:10 50:240 51:87000400"; got != want {
		t.Errorf("V3: %s\nwant %s", got, want)
	}
	desktop := append(slices.Clone(common), []setting{
		{InvalidateInstruction, 0, 1}, {InvalidateShaderConstant, 0, 1}, {CTARasterWidth, 0, 1}, {CTARasterHeight, 0, 1}, {CTARasterDepth, 0, 1},
		{MinSMConfigSharedMemSize, 0, 3}, {MaxSMConfigSharedMemSize, 0, 3}, {TargetSMConfigSharedMemSize, 0, 3}, {CTAThreadDimension0, 0, 32},
		{CTAThreadDimension1, 0, 1}, {CTAThreadDimension2, 0, 1}, {RegisterCountV, 0, 16}, {Release0AddressLower, 0, 0xe000},
		{Release0AddressUpper, 0, 2}, {Release0MembarType, 0, 1}, {Release0Enable, 0, 1}, {Release0StructureSize, 0, 1},
		{Release0PayloadLower, 0, 0x30605ad0}, {ProgramAddressLower, 0, 0xb000}, {ProgramAddressUpper, 0, 2},
	}...)
	if got, want := build(t, QMD3(), desktop), "4:7f 5:fc000000 11:4010000 12:1 13:1 14:1 17:60c0000 18:200030 19:10001 20:61000 24:e000 "+
		"25:40880002 26:30605ad0 48:b000 49:2"; got != want {
		t.Errorf("desktop: %s\nwant %s", got, want)
	}
	hopper := []setting{
		{"QMD_TYPE", 0, 2}, {"CONSTANT_BUFFER_VALID", 0, 1}, {"CONSTANT_BUFFER_INVALIDATE", 0, 1}, {SassVersion, 0, 0x90},
		{ShaderLocalMemoryHighSize, 0, 0x240}, {APIVisibleCallLimit, 0, 1}, {QMDMajorVersion, 0, 4}, {SharedMemorySize, 0, 0x400},
		{InvalidateShaderData, 0, 1}, {MinSMConfigSharedMemSize, 0, 3}, {MaxSMConfigSharedMemSize, 0, 58}, {TargetSMConfigSharedMemSize, 0, 3},
		{"GRID_WIDTH", 0, 4}, {"GRID_HEIGHT", 0, 2}, {"GRID_DEPTH", 0, 1}, {CWDMembarType, 0, 1}, {CTAThreadDimension0, 0, 128},
		{CTAThreadDimension1, 0, 1}, {CTAThreadDimension2, 0, 1}, {"REGISTER_COUNT", 0, 16}, {BarrierCount, 0, 1},
		{ProgramAddressLower, 0, 0x00300100}, {ProgramAddressUpper, 0, 0x10}, {"CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6", 0, 0x40010000},
		{ConstantBufferSizeShifted4, 0, 0x23},
	}
	if got, want := build(t, QMD4(), hopper), "0:1000000 13:9 16:90000000 17:1000240 18:20040040 19:3e83 32:4 33:2 34:1 35:10000 36:10080 "+
		"37:8100001 38:300100 39:10 48:40010000 49:1180000"; got != want {
		t.Errorf("V4: %s\nwant %s", got, want)
	}
}

// Fields of a descriptor do not overlap, but for those of different words of a header's
// union, and all end within it.
func TestTables(t *testing.T) {
	for _, l := range []*Layout{QMD3(), QMD4()} {
		owner := make(map[int]Name)
		for _, f := range l.Fields {
			for i := range f.Count {
				for bit := f.Low + i*f.Step; bit <= f.High+i*f.Step; bit++ {
					if bit >= 32*l.Words || owner[bit] != "" {
						t.Fatalf("%s: bit %d of %s is taken by %q, or past the end", l.Name, bit, f.Name, owner[bit])
					}
					owner[bit] = f.Name
				}
			}
		}
	}
	for _, c := range []*Class{Host(), Compute(), Copy()} {
		for _, m := range c.Methods {
			if m.Offset%4 != 0 || m.Offset+m.Step*(m.Count-1) >= 1<<14 {
				t.Errorf("class %s: method %s at %#x", c.Name, m.Name, m.Offset)
			}
			for _, f := range m.Value.Fields {
				if f.High > 31 || f.Low > f.High {
					t.Errorf("class %s: %s.%s: bits %d:%d", c.Name, m.Name, f.Name, f.High, f.Low)
				}
			}
		}
	}
}

// What does not fit is an error, not another launch.
func TestGridRefused(t *testing.T) {
	good := Grid{
		Program: 0xffffa04580, ProgramBytes: 640, Blocks: [3]uint32{1, 1, 1}, Threads: [3]uint32{32, 1, 1}, Registers: 16, Barriers: 1,
		SharedBytes: 0x400, MinConfig: 3, TargetConfig: 3, MaxConfig: 42, SassVersion: 0x87, Banks: []Bank{{0, 0xffffa06000, 4096}},
	}
	if _, err := good.QMD(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(g *Grid){
		"program":      func(g *Grid) { g.Program += 64 },
		"program high": func(g *Grid) { g.Program += 1 << 40 },
		"threads":      func(g *Grid) { g.Threads[1] = 33 },
		"no threads":   func(g *Grid) { g.Threads[2] = 0 },
		"threads in z": func(g *Grid) { g.Threads = [3]uint32{1, 1, 65} },
		"registers":    func(g *Grid) { g.Registers = 512 },
		"file":         func(g *Grid) { g.Registers, g.Threads[0] = 128, 1024 },
		"shared":       func(g *Grid) { g.SharedBytes = 9 << 10 },
		"shared most":  func(g *Grid) { g.SharedBytes, g.MinConfig = 200<<10, 43 },
		"target":       func(g *Grid) { g.TargetConfig = 1 },
		"bank":         func(g *Grid) { g.Banks[0].Address += 32 },
		"bank size":    func(g *Grid) { g.Banks[0].Bytes = 64<<10 + 1 },
		"bank number":  func(g *Grid) { g.Banks[0].Number = 8 },
		"barriers":     func(g *Grid) { g.Barriers = 32 },
	} {
		g := good
		g.Banks = slices.Clone(good.Banks)
		change(&g)
		if _, err := g.QMD(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if MostThreads(16) != 4096 || MostThreads(255) != 256 || MostThreads(65) != 896 {
		t.Error(MostThreads(16), MostThreads(255), MostThreads(65))
	}
	if SharedConfig(0x400) != 3 || SharedConfig(159744+1024) != 42 || SharedBytes(0) != 0x400 || SharedBytes(1) != 0x480 {
		t.Error(SharedConfig(0x400), SharedConfig(159744+1024), SharedBytes(0), SharedBytes(1))
	}
}

// A mistake of a builder stays.
func TestBuilderRefused(t *testing.T) {
	for name, send := range map[string]func(b *Builder){
		"subchannel": func(b *Builder) { b.Send(3, SetObject, 1) },
		"method":     func(b *Builder) { b.Send(OnHost, "SEND_PCAS_A", 1) },
		"immediate":  func(b *Builder) { b.Immediate(OnCompute, WaitForIdle, 1<<13) },
		"count":      func(b *Builder) { b.SendAll(OnCompute, "LOAD_INLINE_DATA", make([]uint32, 1<<13)...) },
		"qmd":        func(b *Builder) { b.Launch(0x80, 9) },
		"action":     func(b *Builder) { b.Launch(0x100, 16) },
		"semaphore":  func(b *Builder) { b.Release(0x104, 1, false) },
		"far":        func(b *Builder) { b.Release(1<<40, 1, false) },
		"no copy":    func(b *Builder) { b.Copy(0x100, 0x200, 0) },
		"long copy":  func(b *Builder) { b.Copy(0x100, 0x200, MostCopied+1) },
		"copy from":  func(b *Builder) { b.Copy(1<<40, 0x200, 1) },
		"copy to":    func(b *Builder) { b.Copy(0x100, 1<<40, 1) },
		"field":      func(b *Builder) { b.Value(OnHost, SemExecute, Part{"NONE", 1}) },
	} {
		b := &Builder{}
		send(b)
		if b.Err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The recorded launch, word by word.
func TestDecode(t *testing.T) {
	words, err := Parse("# a launch\n" + strings.Replace(recordedLaunch, " 200120ad", "\n0 80002044 # two more\n200120ad", 1))
	check(t, err)
	lines, err := Decode(words)
	check(t, err)
	var got strings.Builder
	for _, l := range lines {
		fmt.Fprintln(&got, l)
	}
	want := `SET_OBJECT = 0xc7c0
SET_SHADER_SHARED_MEMORY_WINDOW_A = 0xfe
SET_SHADER_SHARED_MEMORY_WINDOW_B = 0x0
SET_SHADER_LOCAL_MEMORY_WINDOW_A = 0xfd
SET_SHADER_LOCAL_MEMORY_WINDOW_B = 0x0
SET_SHADER_LOCAL_MEMORY_A = 0x0
SET_SHADER_LOCAL_MEMORY_B = 0x0
SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A = 0x0
SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B = 0x0
SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C = 0x100
INVALIDATE_SHADER_CACHES = 0x1011
WAIT_FOR_IDLE = 0x0
SEND_PCAS_A = 0xffffa080
SEND_SIGNALING_PCAS2_B = 0x9
SEM_ADDR_LO = 0xffa07000
SEM_ADDR_HI = 0xff
SEM_PAYLOAD_LO = 0xdead
SEM_PAYLOAD_HI = 0x0
SEM_EXECUTE = 0x1100001
`
	if got.String() != want {
		t.Errorf("%s\nwant %s", got.String(), want)
	}
	inline, err := Decode([]uint32{0xa00320c6, 1, 2, 3})
	check(t, err)
	if got := fmt.Sprint(inline); got != "[SET_INLINE_QMD_ADDRESS_A = 0x1 SET_INLINE_QMD_ADDRESS_B = 0x2 SET_INLINE_QMD_ADDRESS_B = 0x3]" {
		t.Error(got)
	}
	copied, err := Decode([]uint32{0x20018000, 0xc7b5, 0x20048100, 0xff, 0xffa0c000, 2, 0xe100, 0x20018106, 0x10, 0x200180c0, 0x186})
	check(t, err)
	if got := fmt.Sprint(copied); got != "[SET_OBJECT = 0xc7b5 OFFSET_IN_UPPER = 0xff OFFSET_IN_LOWER = 0xffa0c000 OFFSET_OUT_UPPER = 0x2 OFFSET_OUT_LOWER = 0xe100 LINE_LENGTH_IN = 0x10 LAUNCH_DMA = 0x186]" {
		t.Error(got)
	}
	array, err := Decode([]uint32{0x200320c8, 1, 2, 3})
	check(t, err)
	if got := fmt.Sprint(array); got != "[LOAD_INLINE_QMD_DATA(0) = 0x1 LOAD_INLINE_QMD_DATA(1) = 0x2 LOAD_INLINE_QMD_DATA(2) = 0x3]" {
		t.Error(got)
	}
	for _, bad := range []string{"20010003 1", "00040044 1", "40040044 1", "c0000000", "20050017 1 2", "20013044 0", "2001604c 1", "20013000 1"} {
		words, err := Parse(bad)
		check(t, err)
		if _, err := Decode(words); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	for _, bad := range []string{"xyz", "123456789"} {
		if _, err := Parse(bad); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// A descriptor in names, with what lies outside of all of them.
func TestDecodeQMD(t *testing.T) {
	words := make([]uint32, 64)
	words[20], words[61], words[4] = 0x121001, 7<<16, 0x7f
	lines, err := QMD3().Decode(words)
	check(t, err)
	got := make(map[string]uint64)
	for _, l := range lines {
		got[l.Name] = l.Value
	}
	for name, want := range map[string]uint64{
		"CONSTANT_BUFFER_VALID(0)": 1, "CONSTANT_BUFFER_VALID(7)": 0, "REGISTER_COUNT_V": 16, "TARGET_SM_CONFIG_SHARED_MEM_SIZE": 9,
		"QMD_GROUP_ID": 0x3f, "SM_GLOBAL_CACHING_ENABLE": 1, "HW_ONLY_DEPENDENCE_COUNTER": 0, "RESERVED(61)": 7 << 16,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s = %#x, %v, want %#x", name, v, ok, want)
		}
	}
	if _, err := QMD3().Decode(words[:63]); err == nil {
		t.Error("63 words: no error")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(recordedLaunch)
	f.Add("a0030060 1 2 3 e0000000 80002044")
	f.Fuzz(func(t *testing.T, text string) {
		words, err := Parse(text)
		if err != nil {
			return
		}
		if lines, _ := Decode(words); len(lines) > len(words)+1 {
			t.Errorf("%d lines of %d words", len(lines), len(words))
		}
	})
}
