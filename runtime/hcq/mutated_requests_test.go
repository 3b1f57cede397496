package hcq_test

import (
	"slices"
	"testing"

	replay "tgc/runtime/hcq/check"
	"tgc/runtime/hcq/trace"
)

// requestField is a field of a request's argument: from the kernel's headers (L4T r36), not
// from the runtime's structures. Out fields are not looked at when they come in.
type requestField struct {
	name      string
	at, bytes int
	out       bool
}

// requestFields are the fields of all requests that a step makes.
var requestFields = map[uint32]struct {
	name   string
	fields []requestField
}{
	0xc0084e01: {"CREATE_64", []requestField{{"size", 0, 8, false}}},
	0x40144e03: {"ALLOC", []requestField{{"handle", 0, 4, false}, {"heap_mask", 4, 4, false}, {"flags", 8, 4, false}, {"align", 12, 4, false}, {"numa_nid", 16, 4, false}}},
	0xc0084e0f: {"GET_FD", []requestField{{"fd", 0, 4, true}, {"handle", 4, 4, false}}},
	0xc0104705: {"GET_CHARACTERISTICS", []requestField{{"buf_size", 0, 8, false}}},
	0xc0084712: {"NUM_VSMS", []requestField{{"num_vsms", 0, 4, true}, {"reserved", 4, 4, false}}},
	0xc0404708: {"ALLOC_AS", []requestField{
		{"big_page_size", 0, 4, false}, {"as_fd", 4, 4, true}, {"flags", 8, 4, false}, {"reserved", 12, 4, false}, {"va_range_start", 16, 8, false},
		{"va_range_end", 24, 8, false}, {"va_range_split", 32, 8, false}, {"padding", 40, 8, false}, {"padding", 56, 8, false},
	}},
	0xc0184709: {"OPEN_TSG", []requestField{{"tsg_fd", 0, 4, true}, {"flags", 4, 4, false}, {"source_device_instance_id", 8, 8, false}, {"share_token", 16, 8, false}}},
	0xc004470b: {"OPEN_CHANNEL", []requestField{{"runlist_id", 0, 4, false}}},
	0xc0044101: {"BIND_CHANNEL", []requestField{{"channel_fd", 0, 4, false}}},
	0xc0084105: {"UNMAP_BUFFER", []requestField{{"offset", 0, 8, false}}},
	0xc0204106: {"ALLOC_SPACE", []requestField{
		{"pages", 0, 8, false}, {"page_size", 8, 4, false}, {"flags", 12, 4, false}, {"offset", 16, 8, false}, {"padding", 24, 8, false},
	}},
	0xc0284107: {"MAP_BUFFER_EX", []requestField{
		{"flags", 0, 4, false}, {"compr_kind", 4, 2, false}, {"incompr_kind", 6, 2, false}, {"dmabuf_fd", 8, 4, false}, {"page_size", 12, 4, false},
		{"buffer_offset", 16, 8, false}, {"mapping_size", 24, 8, false}, {"offset", 32, 8, false},
	}},
	0xc0105412: {"CREATE_SUBCONTEXT", []requestField{{"type", 0, 4, false}, {"as_fd", 4, 4, false}, {"veid", 8, 4, true}, {"reserved", 12, 4, false}}},
	0xc018540b: {"BIND_CHANNEL_EX", []requestField{{"channel_fd", 0, 4, false}, {"subcontext_id", 4, 4, false}, {"reserved", 8, 8, false}, {"reserved", 16, 8, false}}},
	0x40084877: {"WDT", []requestField{{"wdt_status", 0, 4, false}, {"timeout_ms", 4, 4, false}}},
	0xc0684880: {"SETUP_BIND", []requestField{
		{"num_gpfifo_entries", 0, 4, false}, {"num_inflight_jobs", 4, 4, false}, {"flags", 8, 4, false}, {"userd_dmabuf_fd", 12, 4, false},
		{"gpfifo_dmabuf_fd", 16, 4, false}, {"work_submit_token", 20, 4, true}, {"userd_dmabuf_offset", 24, 8, false}, {"gpfifo_dmabuf_offset", 32, 8, false},
		{"gpfifo_gpu_va", 40, 8, true}, {"userd_gpu_va", 48, 8, true}, {"usermode_mmio_gpu_va", 56, 8, true}, {"reserved", 64, 8, false}, {"reserved", 92, 8, false},
	}},
	0xc010486c: {"ALLOC_OBJ_CTX", []requestField{{"class_num", 0, 4, false}, {"flags", 4, 4, false}, {"obj_id", 8, 8, true}}},
	0xc018486f: {"SET_ERROR_NOTIFIER", []requestField{{"offset", 0, 8, false}, {"size", 8, 8, false}, {"mem", 16, 4, false}, {"padding", 20, 4, false}}},
}

// ignored are fields that the kernel driver does not look at, or of which a change does no
// harm, and why.
var ignored = map[string]string{
	"ALLOC.heap_mask":              "another heap besides the one that has the memory",
	"ALLOC.flags":                  "the ring is uncached instead of write-combined, or the memory has another tag",
	"CREATE_SUBCONTEXT.veid":       "what comes back",
	"SETUP_BIND.num_inflight_jobs": "for submissions through the kernel, of which there are none",
	"SETUP_BIND.flags":             "protected memory, which nobody has",
	"SET_ERROR_NOTIFIER.offset":    "the record lies elsewhere in its page: TestWindows would not hear of a fault",
	"SET_ERROR_NOTIFIER.size":      "the record has one size",
	"WDT.timeout_ms":               "the watchdog is switched off",
}

// answers are what is found first where that is not EINVAL: by the lowest bit, and by the
// highest.
var answers = map[string][2]string{
	"GET_CHARACTERISTICS.buf_size": {"ioctl result", "ioctl result"},
	"NUM_VSMS.reserved":            {"ioctl reserved", "ioctl reserved"},
	"ALLOC_AS.reserved":            {"ioctl reserved", "ioctl reserved"},
	"ALLOC_AS.padding":             {"ioctl reserved", "ioctl reserved"},
	"ALLOC_SPACE.pages":            {"ioctl result", "ioctl EINVAL"}, // other addresses
	"ALLOC_SPACE.flags":            {"ioctl result", "ioctl EINVAL"},
	"ALLOC_SPACE.padding":          {"ioctl reserved", "ioctl reserved"},
	"CREATE_SUBCONTEXT.type":       {"ioctl result", "ioctl EINVAL"},
	"CREATE_SUBCONTEXT.reserved":   {"ioctl reserved", "ioctl reserved"},
	"BIND_CHANNEL_EX.reserved":     {"ioctl reserved", "ioctl reserved"},
	"CREATE_64.size":               {"ioctl result", "ioctl ENOMEM"}, // a page more: other addresses
	"SETUP_BIND.userd_dmabuf_fd":   {"wait never", "ioctl EINVAL"},   // that of the ring
	"SETUP_BIND.gpfifo_dmabuf_fd":  {"wait never", "ioctl EINVAL"},
	"SETUP_BIND.reserved":          {"ioctl reserved", "ioctl reserved"},
	"SET_ERROR_NOTIFIER.padding":   {"ioctl reserved", "ioctl reserved"},
	"UNMAP_BUFFER.offset":          {"leak unmap", "leak unmap"},
}

// Each field of each request, changed by its lowest bit and by its highest, is refused or
// noticed, with the right code; or it is one of those that do no harm.
func TestMutatedRequests(t *testing.T) {
	s := recordStep(t)
	done := make(map[uint32]bool)
	for at, e := range s.events {
		if e.Kind != trace.Ioctl || e.ByValue || done[e.Request] {
			continue
		}
		done[e.Request] = true
		r, known := requestFields[e.Request]
		if !known {
			t.Errorf("request %#x: its fields are not in the table", e.Request)
		}
		for _, f := range r.fields {
			s.mutateRequest(t, at, r.name+"."+f.name, f)
		}
	}
	for number, r := range requestFields {
		if !done[number] {
			t.Errorf("%s is not in the trace", r.name)
		}
	}
}

func (s *recordedStep) mutateRequest(t *testing.T, at int, name string, f requestField) {
	want, special := answers[name]
	if !special {
		want = [2]string{"ioctl EINVAL", "ioctl EINVAL"}
	}
	for i, bit := range []int{0, 8*f.bytes - 1} {
		found := s.withRequest(at, f, bit)
		switch {
		case f.out || ignored[name] != "":
			if f.out && found != "" {
				t.Errorf("bit %d of %s, which only comes back: %s", bit, name, found)
			}
		case found != want[i]:
			t.Errorf("bit %d of %s: %q, want %q", bit, name, found, want[i])
		}
	}
}

// withRequest is what is found first where a bit of a field is another.
func (s *recordedStep) withRequest(at int, f requestField, bit int) string {
	changed := *s.events[at]
	where, mask := f.at+bit/8, byte(1)<<(bit%8)
	changed.Bytes = slices.Clone(changed.Bytes)
	changed.Bytes[where] ^= mask
	if before := s.events[at]; !f.out && where < len(changed.Out.Bytes) && changed.Out.Bytes[where] == before.Bytes[where] { // it comes back as it went in
		changed.Out.Bytes = slices.Clone(changed.Out.Bytes)
		changed.Out.Bytes[where] ^= mask
	}
	events := slices.Clone(s.events)
	events[at] = &changed
	for _, d := range replay.Trace(events) {
		return d.Kind + " " + d.Code
	}
	return ""
}
