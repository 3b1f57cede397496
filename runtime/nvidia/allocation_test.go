package nvidia

import (
	"strings"
	"testing"
)

// What cannot be read or written is said: outside, imported, freed; and a recording says
// which of its memory is gone.
func TestAllocation(t *testing.T) {
	a := &Allocation[uint64]{Base: 0x1000, Bytes: 8}
	if a.CheckRead(4, 4) != nil || a.CheckWrite(0, 8) != nil || a.Size() != 8 || a.Address() != 0x1000 || a.Host() != nil {
		t.Errorf("%+v", a)
	}
	says := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	says(a.CheckRead(5, 4), "4 bytes at 5 of a buffer of 8")
	a.ReadOnly = true
	says(a.CheckWrite(0, 1), "imported memory is read-only")
	if !a.End() || a.End() {
		t.Error("freed twice")
	}
	says(a.CheckRead(0, 1), "has been freed")
}
