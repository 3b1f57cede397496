package interp_test

import (
	"strings"
	"testing"

	"tgc/ir/program"
	"tgc/runtime/interp"
)

// neighbours lets each thread copy 16 bytes, and read what the next one has copied.
const neighbours = `program "copies"
param %0:*f32 buffer slot 0 name "x" align 16 bytes 512 read
param %1:*f32 buffer slot 1 name "y" align 16 bytes 512 write
grid 1
block 32
%2:i64 = const 4
%3:i64 = const 31
%4:i64 = const 1
%5:*f32@shared = alloca count 128 align 16
gridloop %6:i64 {
  %7:i32 = threadindex lane 0
  %8:i64 = cast %7
  %9:i64 = mul %8 %2
  %10:*f32@shared = ptradd %5 %9
  %11:*f32 = ptradd %0 %9
  copyasync %10 %11 bytes 16
  waitcopies
  barrier
  %12:i64 = add %8 %4
  %13:i64 = and %12 %3
  %14:i64 = mul %13 %2
  %15:*f32@shared = ptradd %5 %14
  %16:f32x4 = load %15 align 16
  %17:*f32 = ptradd %1 %9
  store %17 %16 align 16
}
`

func runCopies(text string) ([]byte, error) {
	p, err := program.Parse(text)
	if err != nil {
		return nil, err
	}
	x, y := make([]byte, 512), make([]byte, 512)
	for i := range x {
		x[i] = byte(i / 16)
	}
	return y, interp.RunProgram(p, []interp.Arg{{Bytes: x}, {Bytes: y}}, 0, 1)
}

func TestCopies(t *testing.T) {
	y, err := runCopies(neighbours)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range y {
		if want := byte((i/16 + 1) % 32); v != want {
			t.Fatalf("byte %d is %d, want %d", i, v, want)
		}
	}
}

func TestCopyFaults(t *testing.T) {
	for _, c := range []struct{ name, old, replacement, want string }{
		{"no wait", "  waitcopies\n", "", "has not waited"},
		{"no barrier", "  barrier\n", "", "without a barrier"},
		{"a wait behind the barrier", "  waitcopies\n  barrier\n", "  barrier\n  waitcopies\n", "without a barrier"},
		{"past the end of the array", "count 128", "count 124", "outside"},
		{"not aligned", "count 128 align 16", "count 128 align 8", "not aligned"},
		{"from where nothing is aligned", `"x" align 16`, `"x" align 4`, "not aligned"},
	} {
		text := strings.Replace(neighbours, c.old, c.replacement, 1)
		if text == neighbours {
			t.Fatalf("%s: nothing changed", c.name)
		}
		if _, err := runCopies(text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// What a copy writes has no value before the wait, not even for its own thread.
func TestCopiesAreLate(t *testing.T) {
	text := strings.Replace(neighbours, "  waitcopies\n  barrier\n", "", 1)
	text = strings.Replace(text, "%12:i64 = add %8 %4", "%12:i64 = add %8 %18", 1)
	text = strings.Replace(text, "grid 1\nblock 32\n", "grid 1\nblock 32\n%18:i64 = const 0\n", 1)
	text = strings.Replace(text, "  store", "  waitcopies\n  store", 1)
	y, err := runCopies(text)
	if err != nil {
		t.Fatal(err)
	}
	if y[100] != 0xff {
		t.Errorf("byte 100 is %d", y[100])
	}
}
