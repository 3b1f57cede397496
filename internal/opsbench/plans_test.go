package main

import (
	"bytes"
	"strings"
	"testing"

	"tgc/ir/program"
)

// Plans are printed without a device, with what a thread reads and writes.
func TestPrintAllPlans(t *testing.T) {
	var out bytes.Buffer
	if err := printAllPlans(t.Context(), &out, "ptx:sm_90", named([]string{"transpose 35x37"}), true); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.HasPrefix(text, "transpose 35x37: 1 launches\n   0  ") || !strings.Contains(text, " accesses of ") || !strings.Contains(text, "b0[r0,r1] = b1[r1,r0]") {
		t.Errorf("got %s", text)
	}
	if printAllPlans(t.Context(), &out, "ptx:sm_1", nil, false) == nil {
		t.Error("a target that is none")
	}
}

// A loop with constant bounds counts as often as it runs, shared memory does not count.
func TestTraffic(t *testing.T) {
	p, err := program.Parse(`program "rows"
param %0:*f32 buffer slot 0 name "x" align 64 bytes 65536 read
param %1:*f32 buffer slot 1 name "y" align 64 bytes 65536 write
grid 2
block 32
%2:i64 = const 0
%3:i64 = const 7
%4:i64 = const 2
%5:*f32@shared = alloca count 32 align 16
gridloop %6:i64 {
  for %2 %3 %4 do %7:i64 {
    %8:f32 = load %0 align 4
    store %5 %8 align 4
    yield
  }
  %9:f32 = load %5 align 4
  store %1 %9 align 4
}
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := trafficOf(p); got != (traffic{5, 20}) {
		t.Errorf("got %+v", got)
	}
}
