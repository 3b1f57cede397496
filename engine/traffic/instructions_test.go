package traffic_test

import (
	"testing"

	"tgc/engine/traffic"
	"tgc/ir/program"
)

// Loops count with their trips, a triangular one with those of its middle, vectors by
// registers, and what is in front of the units once.
func TestInstructions(t *testing.T) {
	p, err := program.Parse(`program "count"
param %0:*f32 buffer slot 0 name "p0" align 64 bytes 4096 read write
grid 4
%1:i64 = const 0
%2:i64 = const 8
%3:i64 = const 1
gridloop %4:i64 {
  for %1 %2 %3 do %5:i64 {
    %6:*f32 = ptradd %0 %5
    %7:f32x16 = load %6 align 4
    %8:f32x16 = add %7 %7
    store %6 %8 align 4
    yield
  }
  for %1 %4 %3 do %9:i64 {
    %10:*f32 = ptradd %0 %9
    %11:f32 = load %10 align 4
    %12:f32 = fdiv %11 %11
    store %10 %12 align 4
    yield
  }
}
`)
	if err != nil {
		t.Fatal(err)
	}
	// 4 units of 8 x (1 + 3 instructions of 2 registers) and of 2 x (1 + 1 + 4 + 1).
	if got, want := traffic.Instructions(p, nil, 32), 4.0*(8*(1+3*2)+2*(1+1+4+1)); got != want {
		t.Errorf("%g instructions, want %g", got, want)
	}
	want := [traffic.NumPipes]float64{traffic.MemoryPipe: 4 * (8*4 + 2*2), traffic.FloatPipe: 4 * (8*2 + 2*4), traffic.ControlPipe: 4 * (8 + 2)}
	if got := traffic.Pipes(p, nil, 32); got != want {
		t.Errorf("%v by pipe, want %v", got, want)
	}
}
