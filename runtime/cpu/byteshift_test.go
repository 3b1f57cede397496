package cpu

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"tgc/ir/program"
	"tgc/runtime/cpu/llvmc"
	"tgc/runtime/interp"
)

// byteShifts shifts bytes by amounts that are equal in each word, that are not, and that
// are as large as a byte.
const byteShifts = `program "byteshifts"
param %0:*u8 buffer slot 0 name "x" align 32 bytes 32 read
param %1:*u8 buffer slot 1 name "y" align 32 bytes 160 write
grid 1
%2:u8x4 = constlanes 0 4 7 2
%3:u8x32 = shuffle %2 %2 mask 0 0 0 0 1 1 1 1 2 2 2 2 3 3 3 3 1 1 1 1 0 0 0 0 2 2 2 2 0 0 0 0
%4:u8x32 = shuffle %2 %2 mask 0 1 0 1 1 1 1 1 2 2 2 2 3 3 3 3 1 1 1 1 0 0 0 0 2 2 2 2 0 0 0 0
%5:u8x2 = constlanes 8 1
%6:u8x32 = shuffle %5 %5 mask 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
%7:i64 = const 32
%8:i64 = const 64
%9:i64 = const 96
%10:i64 = const 128
gridloop %11:i64 {
  %12:u8x32 = load %0 align 32
  %13:u8x32 = shr %12 %3
  store %1 %13 align 32
  %14:u8x32 = shl %12 %3
  %15:*u8 = ptradd %1 %7
  store %15 %14 align 32
  %16:u8x32 = shr %12 %4
  %17:*u8 = ptradd %1 %8
  store %17 %16 align 32
  %18:u8x32 = shr %12 %6
  %19:*u8 = ptradd %1 %9
  store %19 %18 align 32
  %20:u8x32 = shl %12 %6
  %21:*u8 = ptradd %1 %10
  store %21 %20 align 32
}
`

func TestByteShifts(t *testing.T) {
	p, err := program.Parse(byteShifts)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 5))
	x := make([]byte, 32)
	for i := range x {
		x[i] = byte(r.Uint32())
	}
	buffers := map[int][]byte{0: x, 1: make([]byte, 160)}
	reference := interp.New(interp.Options{Debug: true})
	interpreted, err := reference.Load(t.Context(), []*program.Program{p})
	if err != nil {
		t.Fatal(err)
	}
	want := runOn(t, reference, interpreted[0], buffers, nil)[1]
	for _, options := range []Options{{}, {CPU: "x86-64-v3", Features: llvmc.NoFeatures}, {CPU: "x86-64-v2", Features: llvmc.NoFeatures}} {
		d := newDevice(t, options)
		compiled, err := d.Load(t.Context(), expanded(d, []*program.Program{p}))
		if err != nil {
			t.Fatal(err)
		}
		if got := runOn(t, d, compiled[0], buffers, nil)[1]; !bytes.Equal(got, want) {
			t.Errorf("%s: %x, the interpreter %x", d.Target().Name, got, want)
		}
	}
}
