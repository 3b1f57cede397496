package opt

import (
	"testing"

	"tgc/ir/program"
)

// What keeps a pass from a rewrite, one reason each.
var edgeCases = []rewriteCase{
	{"an atomic access is ordered like all that other blocks see", eliminateBarriers, `
gridloop %9:i64 {
  store %4 %2 align 4
  barrier
  %10:f32 = atomic add %1 %2 align 4
}
`, ""},
	{"accesses before a barrier that stays do not hold the next one", eliminateBarriers, `
gridloop %9:i64 {
  store %4 %2 align 4
  barrier
  %10:f32 = load %4 align 4
  barrier
  %11:f32 = load %4 align 4
  store %1 %10 align 4
  store %1 %11 align 4
}
`, `
gridloop %9:i64 {
  store %4 %2 align 4
  barrier
  %10:f32 = load %4 align 4
  %11:f32 = load %4 align 4
  store %1 %10 align 4
  store %1 %11 align 4
}
`},
	{"lanes, masks and constants tell instructions apart", eliminateCommonSubexpressions, `
gridloop %9:i64 {
  %10:f32x4 = load %1 align 16
  %18:f32x2 = load %1 align 8
  %11:f32 = extract %10 lane 1
  %12:f32 = extract %10 lane 2
  %13:f32x4 = shuffle %10 %10 mask 0 1 2 3
  %14:f32x4 = shuffle %10 %10 mask 3 2 1 0
  %15:i64x2 = constlanes 1 2
  %17:i64x2 = constlanes 2 1
  store %1 %11 align 4
  store %1 %12 align 4
  store %1 %13 align 16
  store %1 %14 align 16
  scatter %1 %15 %18 align 4
  scatter %1 %17 %18 align 4
}
`, ""},
}

func TestEdgesOfRewrites(t *testing.T) { rewrites(t, edgeCases) }

// A loop loads ahead what its registers hold, and no more.
func TestPrefetchKeepsToItsRegisters(t *testing.T) {
	const text = `
gridloop %9:i64 {
  for %6 %7 %8 do %10:i64 {
    %11:*f32 = ptradd %0 %10
    %12:f32x2 = load %11 align 4
    %13:f32x2 = load %0 align 4
    %14:f32 = load %0 align 4
    %15:f32 = extract %12 lane 0
    %17:f32 = extract %13 lane 0
    barrier
    store %4 %15 align 4
    store %4 %17 align 4
    store %4 %14 align 4
    barrier
    %18:f16x8 = load %16 align 16
    %20:f16x4 = load %16 align 16
    %21:f32x4 = mma %19 %18 %20
    store %1 %21 align 16
    yield
  }
}
`
	for registers, want := range map[int]int{1: 1, 2: 1, 3: 2, 4: 2, 5: 3} {
		p, err := program.Parse(rewriteHead + text)
		if err != nil {
			t.Fatal(err)
		}
		p.Options[program.Panel] = registers
		prefetchTiles(p)
		carried := 0
		p.Body.Each(func(in *program.Instr) {
			if in.Op == program.For {
				carried = len(in.Results)
			}
		})
		if carried != want {
			t.Errorf("%d registers: %d loads ahead, want %d\n%s", registers, carried, want, program.Print(p))
		}
	}
}
