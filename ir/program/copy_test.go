package program

import "testing"

const copyProgram = `program "copies"
param %0:*f32 buffer slot 0 name "x" align 16 bytes 512 read
grid 1
block 32
%1:*f32@shared = alloca count 128 align 16
gridloop %2:i64 {
  copyasync %1 %0 bytes 16
  copyasync %1 %0 bytes 4
  waitcopies
}
`

func TestCopyTextForm(t *testing.T) { roundTrip(t, copyProgram) }
