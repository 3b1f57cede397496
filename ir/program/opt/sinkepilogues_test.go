package opt

import (
	"testing"

	"tgc/ir/program"
)

// Two rows of streamed weights, each summed over lanes: what follows the shuffles
// comes after the rows, divisions last.
func TestSinkEpilogues(t *testing.T) {
	late := lateFrom(16)
	rewrites(t, []rewriteCase{
		{"rows first, then shuffles, then divisions; a store by some threads goes along", late, `
gridloop %9:i64 {
  %10:f32 = load %0 align 4
  %11:f32 = mul %10 %10
  %12:i32 = const 1
  %13:f32 = shufflelane %11 %12
  %14:f32 = add %11 %13
  %15:f32 = fdiv %14 %2
  if %3 {
    store %1 %15 align 4
    yield
  } else {
    yield
  }
  %20:*f32 = ptradd %0 %7
  %21:f32x4 = load %20 align 4
  %22:f32x4 = mul %21 %21
  %23:f32x4 = shufflelane %22 %12
  %24:f32x4 = add %22 %23
  store %4 %24 align 4
  barrier
  %30:f32 = load %4 align 4
  store %1 %30 align 4
}
`, `
gridloop %9:i64 {
  %10:f32 = load %0 align 4
  %11:f32 = mul %10 %10
  %12:i32 = const 1
  %20:*f32 = ptradd %0 %7
  %21:f32x4 = load %20 align 4
  %22:f32x4 = mul %21 %21
  %13:f32 = shufflelane %11 %12
  %14:f32 = add %11 %13
  %23:f32x4 = shufflelane %22 %12
  %24:f32x4 = add %22 %23
  store %4 %24 align 4
  %15:f32 = fdiv %14 %2
  if %3 {
    store %1 %15 align 4
    yield
  } else {
    yield
  }
  barrier
  %30:f32 = load %4 align 4
  store %1 %30 align 4
}
`},
		{"memory that is written and read in between keeps its order, by whatever pointer", late, `
gridloop %9:i64 {
  %10:f32 = load %0 align 4
  %12:i32 = const 1
  %13:f32 = shufflelane %10 %12
  %14:f32 = recip %13
  store %4 %14 align 4
  %20:*f32@shared = ptradd %4 %7
  %21:f32 = load %20 align 4
  %22:f32x4 = load %0 align 4
  %23:f32x4 = shufflelane %22 %12
  store %1 %23 align 4
}
`, ""},
		{"weights that are loaded before the divisions gain nothing", late, `
gridloop %9:i64 {
  %10:f32x4 = load %0 align 4
  %12:i32 = const 1
  %13:f32x4 = shufflelane %10 %12
  %14:f32x4 = recip %13
  %22:f32x4 = mul %10 %10
  %23:f32x4 = shufflelane %22 %12
  %24:f32x4 = add %14 %23
  store %1 %24 align 4
}
`, ""},
		{"few weights after a division are not worth the registers", lateFrom(32), `
gridloop %9:i64 {
  %10:f32 = load %0 align 4
  %12:i32 = const 1
  %13:f32 = shufflelane %10 %12
  %14:f32 = recip %13
  store %1 %14 align 4
  %22:f32x4 = load %0 align 4
  %23:f32x4 = shufflelane %22 %12
  store %1 %23 align 4
}
`, ""},
		{"nothing crosses a barrier or a loop", late, `
gridloop %9:i64 {
  %10:f32 = load %0 align 4
  %12:i32 = const 1
  %13:f32 = shufflelane %10 %12
  %14:f32 = recip %13
  store %4 %14 align 4
  barrier
  %21:f32x4 = load %0 align 4
  %23:f32x4 = shufflelane %21 %12
  for %6 %7 %7 do %26:i64 {
    %27:f32x4 = shufflelane %23 %12
    store %4 %27 align 4
    yield
  }
  %30:f32x4 = mul %21 %21
  store %1 %30 align 4
}
`, ""},
	})
}

// lateFrom runs the pass for as many bytes of weights, which the first buffer holds.
func lateFrom(bytes int) func(p *program.Program) {
	return func(p *program.Program) {
		p.Options[program.Late] = bytes
		p.Params[0].Constant, p.Params[0].Early = true, true
		sinkEpilogues(p)
		p.Options[program.Late] = 0
		p.Params[0].Constant, p.Params[0].Early = false, false
	}
}
