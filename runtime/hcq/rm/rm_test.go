package rm

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// bytesOf reads hexadecimal digits with spaces between.
func bytesOf(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What would be asked of the driver to bring a Hopper GPU up, byte by byte, put together
// by hand from the offsets of the headers.
func TestBytes(t *testing.T) {
	zeros := func(n int) string { return strings.Repeat("00", n) }
	for _, c := range []struct {
		name    string
		release int
		values  []Value
		want    string
	}{
		{"NVOS21", 580, []Value{{"hClass", 0, 0x41}}, zeros(12) + "41000000" + zeros(16)},
		{"NVOS21", 580, []Value{{"hRoot", 0, 0xc1d00001}, {"hObjectParent", 0, 0xc1d00002}, {"hObjectNew", 0, 0x5c000003}, {"hClass", 0, 0xcbc0}, {"status", 0, 0x22}},
			"0100d0c1 0200d0c1 0300005c c0cb0000" + zeros(8) + "00000000 22000000"},
		{"NVOS54", 580, []Value{{"hClient", 0, 0xc1d00001}, {"hObject", 0, 7}, {"cmd", 0, 0xc36f0108}, {"params", 0, 0x7fff12345678}, {"paramsSize", 0, 4}},
			"0100d0c1 07000000 08016fc3 00000000 78563412ff7f0000 04000000 00000000"},
		{"NVOS46", 580, []Value{{"hMemory", 0, 9}, {"length", 0, 0x200000}, {"flags", 0, 0x8110}, {"dmaOffset", 0, 0x1000000000}},
			zeros(12) + "09000000" + zeros(8) + "0000200000000000 10810000 00000000 00000000 00000000 0000000010000000" + zeros(8)},
		{"NVOS46", 570, []Value{{"hMemory", 0, 9}, {"length", 0, 0x200000}, {"flags", 0, 0x8110}, {"dmaOffset", 0, 0x1000000000}},
			zeros(12) + "09000000" + zeros(8) + "0000200000000000 10810000 00000000 0000000010000000" + zeros(8)},
		{"NVOS33_FD", 580, []Value{{"hMemory", 0, 3}, {"length", 0, 0x10000}, {"fd", 0, 0xc}}, zeros(8) + "03000000" + zeros(12) + "0000010000000000" + zeros(16) + "0c000000 00000000"},
		{"VASPACE", 580, []Value{{"flags", 0, 0x48}, {"vaSize", 0, 0x1fffffb000000}, {"vaBase", 0, 0x1000}}, "00000000 48000000 000000fbffff0100" + zeros(24) + "0010000000000000" + zeros(8)},
		{"CHANNEL_GROUP", 580, []Value{{"hVASpace", 0, 5}, {"engineType", 0, 1}}, zeros(8) + "05000000 01000000 00000000"},
		{"CTXSHARE", 580, []Value{{"hVASpace", 0, 5}, {"flags", 0, 1}}, "05000000 01000000 00000000"},
		{"CHANNEL_GPFIFO", 580, []Value{{"gpFifoOffset", 0, 0x1000200000}, {"gpFifoEntries", 0, 1024}, {"hContextShare", 0, 6}, {"hUserdMemory", 0, 7}, {"userdOffset", 0, 0x2000}},
			zeros(8) + "0000200010000000 00040000 00000000 06000000 00000000 07000000" + zeros(28) + "0020000000000000" + zeros(368-72)},
		{"CHANNEL_GPFIFO", 610, []Value{{"gpFifoEntries", 0, 1024}, {"hUserdMemory", 0, 7}, {"userdOffset", 0, 0x2000}},
			zeros(16) + "00040000" + zeros(16) + "07000000" + zeros(32) + "0020000000000000" + zeros(376-80)},
		{"SCHEDULE", 570, []Value{{"bEnable", 0, 1}}, "0100"},
		{"SCHEDULE", 580, []Value{{"bEnable", 0, 1}}, "010000"},
		{"UVM_REGISTER_GPU_VASPACE", 580, []Value{{"gpuUuid", 0, 0xaa}, {"gpuUuid", 15, 0xbb}, {"rmCtrlFd", 0, 4}, {"hClient", 0, 0xc1d00001}, {"hVaSpace", 0, 5}},
			"aa" + zeros(14) + "bb 04000000 0100d0c1 05000000 00000000"},
		{"UVM_FREE", 580, []Value{{"base", 0, 0x1000}, {"length", 0, 0x2000}}, "0010000000000000 0020000000000000" + zeros(8)},
		{"UVM_FREE", 610, []Value{{"base", 0, 0x1000}}, "0010000000000000" + zeros(8)},
		{"NOTIFICATION", 580, []Value{{"timeStamp", 1, 2}, {"info32", 0, 31}, {"status", 0, 0xffff}}, "00000000 02000000 1f000000 0000 ffff"},
	} {
		s, err := Lookup(c.name, c.release)
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := s.Encode(c.values...)
		if err != nil || string(got) != string(bytesOf(t, c.want)) {
			t.Errorf("%s of %d: %x, %v\nwant %x", c.name, c.release, got, err, bytesOf(t, c.want))
			continue
		}
		for _, v := range c.values {
			if back, err := s.Get(got, v.Field, v.Element); err != nil || back != v.Value {
				t.Errorf("%s.%s: %#x, %v", c.name, v.Field, back, err)
			}
		}
	}
}

// Requests are the numbers of the headers, which have the sizes of their structures.
func TestRequests(t *testing.T) {
	want := map[string]uint32{
		"RM_ALLOC_MEMORY": 0xc0384627, "RM_FREE": 0xc0104629, "RM_CONTROL": 0xc020462a, "RM_ALLOC": 0xc020462b, "RM_ALLOC_RIGHTS": 0xc030462b,
		"RM_MAP_MEMORY": 0xc038464e, "RM_UNMAP_MEMORY": 0xc020464f, "RM_MAP_MEMORY_DMA": 0xc0404657, "RM_UNMAP_MEMORY_DMA": 0xc0304658,
		"CARD_INFO": 0xd20046c8, "REGISTER_FD": 0xc00446c9, "CHECK_VERSION_STR": 0xc04846d2, "SYS_PARAMS": 0xc00846d6,
	}
	for _, r := range Escapes() {
		count := 1
		if r.Name == "CARD_INFO" {
			count = 64
		}
		if got, err := r.Ioctl(580, count); err != nil || got != want[r.Name] {
			t.Errorf("%s: %#x, %v, want %#x", r.Name, got, err, want[r.Name])
		}
		if r.Name == "RM_MAP_MEMORY_DMA" {
			if got, err := r.Ioctl(570, 1); err != nil || got != 0xc0384657 {
				t.Errorf("%s of 570: %#x, %v", r.Name, got, err)
			}
		}
		if _, err := r.Ioctl(580, 0); err == nil {
			t.Errorf("%s without a structure", r.Name)
		}
	}
	if len(Escapes()) != len(want) {
		t.Errorf("%d escapes, want %d", len(Escapes()), len(want))
	}
	for _, r := range append(Controls(), UVM()...) {
		if _, err := Lookup(r.Struct, 580); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
	}
	hopper := Generations()[len(Generations())-1]
	if hopper != (Classes{"GH100", 0xc661, 0xc86f, 0xcbc0, 0xc8b5}) {
		t.Errorf("%+v", hopper)
	}
}

// Fields do not overlap, are aligned to their size and end within their structure; sizes
// of 570, 580 and 610 are those that are known to differ.
func TestTables(t *testing.T) {
	for name, versions := range structs() {
		for _, s := range versions {
			owner := make([]string, s.Bytes)
			for _, f := range s.Fields {
				end := f.Offset + f.Bytes*f.Count
				if f.Offset%f.Bytes != 0 || end > s.Bytes || f.Bytes&(f.Bytes-1) != 0 || f.Bytes > 8 {
					t.Errorf("%s.%s: %+v", name, f.Name, f)
					continue
				}
				for at := f.Offset; at < end; at++ {
					if owner[at] != "" {
						t.Errorf("%s: byte %d is of %s and %s", name, at, owner[at], f.Name)
						break
					}
					owner[at] = f.Name
				}
			}
		}
	}
	for _, c := range []struct {
		name  string
		sizes [3]int
	}{
		{"NVOS46", [3]int{56, 64, 64}}, {"VASPACE", [3]int{48, 56, 56}}, {"SCHEDULE", [3]int{2, 3, 3}}, {"CLASSLIST_V2", [3]int{404, 804, 804}},
		{"CHANNEL_GPFIFO", [3]int{368, 368, 376}}, {"UVM_FREE", [3]int{24, 24, 16}}, {"UVM_UNREGISTER_CHANNEL", [3]int{28, 28, 12}},
	} {
		for i, release := range []int{570, 580, 610} {
			if s, err := Lookup(c.name, release); err != nil || s.Bytes != c.sizes[i] {
				t.Errorf("%s of %d: %+v, %v, want %d bytes", c.name, release, s, err, c.sizes[i])
			}
		}
	}
}

func TestRefused(t *testing.T) {
	if _, err := Lookup("NONE", 580); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	s, err := Lookup("SCHEDULE", 580)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []Value{{"none", 0, 1}, {"bEnable", 1, 1}, {"bEnable", 0, 256}} {
		if _, err := s.Encode(v); !errors.Is(err, ErrUnknown) {
			t.Errorf("%+v: %v", v, err)
		}
	}
	if _, err := s.Get(make([]byte, 2), "bEnable", 0); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}
