package hcq_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tgc/internal/cudatools"
	"tgc/runtime"
	"tgc/runtime/hcq"
	replay "tgc/runtime/hcq/check"
	"tgc/runtime/hcq/emu"
	"tgc/runtime/hcq/tegra"
	"tgc/runtime/hcq/trace"
	"tgc/runtime/hcq/word"
)

// recordedStep is the trace of a step of two launches, or of a copy after one.
type recordedStep struct {
	events      []*trace.Event
	descriptors []uint64 // addresses
	bell        int      // the event that starts the step
	launches    int      // and copies
}

// recordStep is the trace of a step of two launches.
func recordStep(t *testing.T) *recordedStep {
	s := recordTrace(t, func(d *hcq.Device) []uint64 {
		x := alloc(t, d, 256)
		r := step(t, d, load(t, d, addProgram(t, "add", 64)), [2]runtime.Memory{x, x}, [2]runtime.Memory{x, x})
		check(t, r.Run(t.Context(), map[string]int64{"n": 3}))
		return r.Descriptors()
	})
	if s.launches != 2 {
		t.Fatalf("%d launches, want 2", s.launches)
	}
	return s
}

// recordTrace is the trace of what a function does with a device. It returns the addresses
// of descriptors.
func recordTrace(t *testing.T, do func(d *hcq.Device) []uint64) *recordedStep {
	t.Helper()
	if cudatools.FromEnvironment().PtxasPath == "" {
		t.Skip("no ptxas")
	}
	var text strings.Builder
	machine := emu.New(emu.Options{})
	recorder := trace.NewRecorder(machine, &text)
	board, err := tegra.Open(recorder, tegra.Options{Entries: 512})
	check(t, err)
	d, err := hcq.New(board, hcq.Options{NoCache: true, Loaded: machine.Know, Placed: hcq.RecordKernel(recorder)})
	check(t, err)
	s := &recordedStep{descriptors: do(d)}
	check(t, recorder.Err())
	if s.events, err = trace.Parse(text.String()); err != nil {
		t.Fatal(err)
	}
	check(t, d.Close())
	_, s.launches = replay.Replay(s.events)
	for i, e := range s.events {
		if e.Kind == trace.Doorbell {
			s.bell = i
		}
	}
	return s
}

// mapping finds the name of what is mapped at an address, and the offset in it.
func (s *recordedStep) mapping(t *testing.T, address uint64) (name string, offset uint64) {
	t.Helper()
	for i, e := range s.events {
		if e.Kind != trace.Ioctl || e.Request != mapBuffer {
			continue
		}
		base := binary.LittleEndian.Uint64(e.Out.Bytes[32:])
		next := s.events[i+1]
		if next.Kind == trace.Mmap && address >= base && address < base+next.Value {
			name, offset = next.Name, address-base
		}
	}
	if name == "" {
		t.Fatalf("nothing is mapped at %#x", address)
	}
	return name, offset
}

// with is what is found where a store precedes the step's doorbell.
func (s *recordedStep) with(name string, offset uint64, bytes []byte) string {
	events := slices.Insert(slices.Clone(s.events), s.bell-3, &trace.Event{Kind: trace.Store, Name: name, Offset: offset, Bytes: bytes})
	found, launches := replay.Replay(events)
	switch {
	case len(found) > 0:
		return found[0].Kind + " " + found[0].Code
	case launches != s.launches:
		return "launches"
	}
	return ""
}

// bytes are what a mapping holds when the doorbell rings.
func (s *recordedStep) bytes(name string, offset, n uint64) []byte {
	out := make([]byte, n)
	for _, e := range s.events[:s.bell] {
		if e.Kind != trace.Store || e.Name != name {
			continue
		}
		for i, b := range e.Bytes {
			if at := e.Offset + uint64(i); at >= offset && at < offset+n {
				out[at-offset] = b
			}
		}
	}
	return out
}

// harmless are fields of which a change does no harm that the machine could see, and why;
// a name that ends with * is the beginning of several.
var harmless = map[string]string{
	"CTA_RASTER_WIDTH":               "fewer or more blocks: only the descriptor says how many",
	"CTA_RASTER_HEIGHT":              "as the width",
	"CTA_RASTER_DEPTH":               "as the width",
	"CTA_THREAD_DIMENSION*":          "fewer or more threads, within the limits",
	"QMD_GROUP_ID":                   "a number for lists of the scheduler",
	"SM_GLOBAL_CACHING_*":            "speed",
	"INVALIDATE_TEXTURE_*":           "kernels have no textures",
	"INVALIDATE_*":                   "the step invalidates before its first launch",
	"CONSTANT_BUFFER_INVALIDATE*":    "all banks are invalidated by another bit",
	"CONSTANT_BUFFER_PREFETCH_POST*": "speed",
	"CONSTANT_BUFFER_VALID*":         "a bank that the code does not read",
	"CONSTANT_BUFFER_ADDR_*":         "a bank that the code does not read",
	"CONSTANT_BUFFER_SIZE_SHIFTED4*": "a bank that the code does not read, or one that is longer than is read",
	"PROGRAM_PREFETCH_*":             "speed",
	"CWD_MEMBAR_TYPE":                "the machine's memory is coherent",
	"API_VISIBLE_CALL_LIMIT":         "a check of calls that kernels do not make",
	"SAMPLER_INDEX":                  "kernels have no textures",
	"DEPENDENT_QMD0_PREFETCH":        "speed",
	"REGISTER_COUNT_V":               "more registers than the code needs",
	"BARRIER_COUNT":                  "more barriers than the code needs",
	"SASS_VERSION":                   "a launch without one ran on a desktop GPU",
	"SHADER_LOCAL_MEMORY_LOW_SIZE":   "the half of local memory that ptxas does not use",
	"RELEASE0_*":                     "no release is enabled",
	"RELEASE1_*":                     "no release is enabled",
	"DEBUG_ID_*":                     "for debuggers",
	"TARGET_SM_CONFIG_*":             "speed",
}

// isHarmless reports a field that the table has.
func isHarmless(name string) bool {
	for pattern := range harmless {
		if prefix, several := strings.CutSuffix(pattern, "*"); name == pattern || several && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Each field of a descriptor, changed by its lowest bit and by its highest, is refused with
// a code, or is one of those that do no harm.
func TestMutatedDescriptor(t *testing.T) {
	s := recordStep(t)
	if found := replay.Trace(s.events); len(found) > 0 {
		t.Fatalf("the step as it is: %v", found)
	}
	noticed := 0
	for i, address := range s.descriptors {
		noticed += s.mutate(t, address, i+1 < len(s.descriptors))
	}
	if noticed < 2*170 {
		t.Errorf("%d changes are noticed", noticed)
	}
}

// mutate changes a descriptor, which another one follows or does not, and counts the
// changes that are noticed.
func (s *recordedStep) mutate(t *testing.T, address uint64, followed bool) (noticed int) {
	name, offset := s.mapping(t, address)
	before := s.bytes(name, offset, 256)
	for _, f := range word.QMD3().Fields {
		for element := range f.Count {
			label := string(f.Name)
			if f.Step > 0 {
				label = fmt.Sprintf("%s(%d)", f.Name, element)
			}
			for i, bit := range []int{f.Low, f.High} {
				at := bit + element*f.Step
				found := s.with(name, offset+uint64(at/8), []byte{before[at/8] ^ 1<<(at%8)})
				if found != "" {
					noticed++
				} else if !isHarmless(label) && (followed || !strings.HasPrefix(label, "DEPENDENT_QMD0_")) {
					t.Errorf("bit %d of %s: nobody notices", at, label)
				}
				if want := refusal(f.Name, i, followed); found != "" && found != want && !(want == "mmu" && strings.HasPrefix(found, "mmu ")) {
					t.Errorf("bit %d of %s: %q, want %q", at, label, found, want)
				}
			}
		}
	}
	return noticed
}

// refused are the codes of fields by their lowest and their highest bit, where a change is
// noticed; mmu stands for any address. All others have none but zero, or are harmless.
var refused = map[word.Name][2]string{
	"QMD_MAJOR_VERSION": {"sked 01000000", "sked 01000000"}, "QMD_VERSION": {"sked 01000000", "sked 01000000"},
	"MIN_SM_CONFIG_SHARED_MEM_SIZE": {"sked 02000000", "sked 02000000"}, "MAX_SM_CONFIG_SHARED_MEM_SIZE": {"sked 02000000", "sked 02000000"},
	"TARGET_SM_CONFIG_SHARED_MEM_SIZE": {"sked 02000000", "sked 02000000"}, "SHARED_MEMORY_SIZE": {"sked 00200000", "sked 02000000"},
	"SHADER_LOCAL_MEMORY_HIGH_SIZE": {"sked 00000200", "sked 00001000"}, "REGISTER_COUNT_V": {"sm d", "sked 00002000"},
	"CTA_THREAD_DIMENSION0": {"sked 00800000", "sked 00040000"}, "CTA_THREAD_DIMENSION1": {"sked 00800000", "sked 00040000"},
	"CTA_THREAD_DIMENSION2": {"sked 00800000", "sked 00040000"}, "BARRIER_COUNT": {"sm b", ""},
	"PROGRAM_ADDRESS_LOWER": {"sked 00100000", "mmu"}, "PROGRAM_ADDRESS_UPPER": {"mmu", "mmu"},
	"CONSTANT_BUFFER_VALID": {"sm 12", "sm 12"}, "CONSTANT_BUFFER_SIZE_SHIFTED4": {"sm 12", "sked 00000080"},
	"CONSTANT_BUFFER_ADDR_LOWER": {"mmu", "mmu"}, "CONSTANT_BUFFER_ADDR_UPPER": {"mmu", "mmu"},
	"RELEASE0_ENABLE": {"mmu", "mmu"}, "RELEASE1_ENABLE": {"mmu", "mmu"}, "DEPENDENT_QMD0_POINTER": {"sked 01000000", "mmu"},
}

// refusal is what a change of a field's lowest or highest bit is refused with.
func refusal(name word.Name, bit int, followed bool) string {
	if name == "DEPENDENT_QMD0_ENABLE" && followed {
		return "launches" // the second never starts
	}
	if codes, known := refused[name]; known {
		return codes[bit]
	}
	return "sked field"
}

// harmlessEntryBits are bits of the ring's entry of which a change does no harm, or none in
// a replay, and why.
var harmlessEntryBits = map[int]string{
	3:  "the invalidation of caches is left out: nothing is stale in a first run",
	4:  "both invalidations are left out",
	8:  "the words of the other set, whose parameters are others: TestIncrements would have other values",
	41: "LEVEL: entries of both kinds are seen in use",
	42: "more words, which are zero: no operations", 43: "as 42", 44: "as 42", 46: "as 42", 47: "as 42",
	63: "SYNC: waits for what is done already",
}

// harmlessHeader says why a change of a header's bit does no harm; empty where it does.
func harmlessHeader(header uint32, bit int) string {
	const invalidateSked = 0x200120a6
	switch {
	case header>>16&0x1fff == 1 && (bit == 30 || bit == 31):
		return "one word goes to the same method by another opcode"
	case header == invalidateSked && bit == 16:
		return "the invalidation is left out: nothing is stale in a first run"
	}
	return ""
}

// Each bit of the ring's entry, and of the headers of the step's words, is noticed, but for
// those in which an entry or a word says the same otherwise, or nothing that matters.
func TestMutatedWords(t *testing.T) {
	s := recordStep(t)
	const ring, userd, putAt = "m0", "m1", 0x8c // the first two mappings
	put := uint64(binary.LittleEndian.Uint32(s.bytes(userd, putAt, 4)))
	at := 8 * (put - 2) // the step, then what signals its end
	entry := s.bytes(ring, at, 8)
	name, offset := s.mapping(t, binary.LittleEndian.Uint64(entry)&(1<<40-1))
	for bit := range 64 {
		found := s.with(ring, at+uint64(bit/8), []byte{entry[bit/8] ^ 1<<(bit%8)})
		if reserved := bit < 2 || bit == 40; reserved && found != "pbdma 15" || found == "" && harmlessEntryBits[bit] == "" {
			t.Errorf("bit %d of the entry: %q", bit, found)
		}
	}
	count := binary.LittleEndian.Uint64(entry) >> 42 & (1<<21 - 1)
	bytes := s.bytes(name, offset, 4*count)
	for at := uint64(0); at < 4*count; {
		header := binary.LittleEndian.Uint32(bytes[at:])
		for bit := range 32 {
			found := s.with(name, offset+at+uint64(bit/8), []byte{bytes[at+uint64(bit/8)] ^ 1<<(bit%8)})
			if found == "" && harmlessHeader(header, bit) == "" {
				t.Errorf("bit %d of header %08x: nobody notices", bit, header)
			}
		}
		at += 4 * uint64(1+header>>16&0x1fff)
	}
}
