package opt

import (
	"testing"

	"tgc/ir/program"
)

// Parts of a program, as a pass leaves them: what is dropped, what stays and why.
type rewriteCase struct {
	name     string
	pass     func(*program.Program)
	in, want string // "" is what came in
}

var rewriteCases = []rewriteCase{
	{"a load and a fold are made once; a block's values end with it", eliminateCommonSubexpressions, `
gridloop %9:i64 {
  %10:i32 = threadindex lane 0
  %11:i64 = cast %10
  if %3 {
    %20:*f32 = ptradd %0 %11
    %21:f32x4 = load %20 align 16
    %22:f32 = fold max %21
    store %1 %22 align 4
    yield
  } else {
    yield
  }
  %30:*f32 = ptradd %0 %11
  %31:f32x4 = load %30 align 16
  %32:f32 = fold max %31
  store %1 %32 align 4
  barrier
  %40:*f32 = ptradd %0 %11
  %41:f32x4 = load %40 align 16
  %42:f32 = fold max %41
  %43:f32 = fold add %41
  store %1 %42 align 4
  store %1 %43 align 4
}
`, `
gridloop %9:i64 {
  %10:i32 = threadindex lane 0
  %11:i64 = cast %10
  if %3 {
    %20:*f32 = ptradd %0 %11
    %21:f32x4 = load %20 align 16
    %22:f32 = fold max %21
    store %1 %22 align 4
    yield
  } else {
    yield
  }
  %30:*f32 = ptradd %0 %11
  %31:f32x4 = load %30 align 16
  %32:f32 = fold max %31
  store %1 %32 align 4
  barrier
  %43:f32 = fold add %31
  store %1 %32 align 4
  store %1 %43 align 4
}
`},
	{"memory that is written is read again", eliminateCommonSubexpressions, `
gridloop %9:i64 {
  %10:f32 = load %1 align 4
  store %1 %10 align 4
  %11:f32 = load %1 align 4
  %12:f32 = load %4 align 4
  barrier
  %13:f32 = load %4 align 4
  store %1 %11 align 4
  store %1 %12 align 4
  store %1 %13 align 4
}
`, ""},
	{"arrays filled one after the other are read after one barrier", eliminateBarriers, `
gridloop %9:i64 {
  store %4 %2 align 4
  barrier
  store %5 %2 align 4
  barrier
  %10:f32 = load %4 align 4
  %11:f32 = load %5 align 4
  store %1 %10 align 4
  barrier
  store %1 %11 align 4
}
`, `
gridloop %9:i64 {
  store %4 %2 align 4
  store %5 %2 align 4
  barrier
  %10:f32 = load %4 align 4
  %11:f32 = load %5 align 4
  store %1 %10 align 4
  barrier
  store %1 %11 align 4
}
`},
	{"an array is overwritten after all have read it", eliminateBarriers, `
gridloop %9:i64 {
  %10:f32 = load %4 align 4
  barrier
  store %4 %2 align 4
  barrier
  %11:f32 = load %4 align 4
  store %1 %10 align 4
  store %1 %11 align 4
}
`, ""},
	{"an array is overwritten after it was written", eliminateBarriers, `
gridloop %9:i64 {
  store %4 %2 align 4
  barrier
  store %4 %2 align 4
  store %1 %2 align 4
}
`, ""},
	{"a barrier stays between accesses two barriers apart", eliminateBarriers, `
gridloop %9:i64 {
  store %4 %2 align 4
  barrier
  %10:f32 = load %5 align 4
  barrier
  %11:f32 = load %4 align 4
  store %5 %11 align 4
  store %1 %10 align 4
}
`, `
gridloop %9:i64 {
  store %4 %2 align 4
  %10:f32 = load %5 align 4
  barrier
  %11:f32 = load %4 align 4
  store %5 %11 align 4
  store %1 %10 align 4
}
`},
	{"a weight loaded ahead of the wait is converted where it is used", sinkConversions, `
gridloop %9:i64 {
  %10:f32 = load %0 align 4 cache const
  waitgrid
  %11:i32 = cast %10
  %12:f32 = cast %11
  %13:f32 = load %1 align 4
  %14:f32 = neg %13
  store %4 %14 align 4
  barrier
  %15:f32 = load %4 align 4
  for %6 %7 %7 do %20:i64 {
    store %1 %12 align 4
    yield
  }
  store %1 %15 align 4
}
`, `
gridloop %9:i64 {
  %10:f32 = load %0 align 4 cache const
  waitgrid
  %13:f32 = load %1 align 4
  %14:f32 = neg %13
  store %4 %14 align 4
  barrier
  %15:f32 = load %4 align 4
  %11:i32 = cast %10
  %12:f32 = cast %11
  for %6 %7 %7 do %20:i64 {
    store %1 %12 align 4
    yield
  }
  store %1 %15 align 4
}
`},
	{"a loop comes back to its barriers", eliminateBarriers, `
gridloop %9:i64 {
  for %6 %7 %7 do %10:i64 {
    barrier
    store %4 %2 align 4
    barrier
    %11:f32 = load %4 align 4
    store %1 %11 align 4
    yield
  }
}
`, ""},
	{"a loop that computes with what it loads loads ahead", prefetchOne, `
gridloop %9:i64 {
  for %6 %7 %8 do %10:i64 {
    %11:*f32 = ptradd %0 %10
    %12:f32 = load %11 align 4
    %13:f32 = load %1 align 4
    barrier
    store %4 %12 align 4
    store %5 %13 align 4
    barrier
    %14:f32 = load %0 align 4
    %15:f16x8 = load %16 align 16
    %17:f16x4 = load %16 align 16
    %18:f32x4 = mma %19 %15 %17
    %20:f32 = extract %18 lane 0
    store %1 %20 align 4
    store %1 %14 align 4
    yield
  }
}
`, `
gridloop %9:i64 {
  %21:*f32 = ptradd %0 %6
  %22:f32 = load %21 align 4
  %29:f32 = for %6 %7 %8 %22 do %10:i64 %28:f32 {
    %11:*f32 = ptradd %0 %10
    %13:f32 = load %1 align 4
    barrier
    store %4 %28 align 4
    store %5 %13 align 4
    barrier
    %23:i64 = add %10 %8
    %24:i64 = sub %7 %8
    %25:i64 = min %23 %24
    %26:*f32 = ptradd %0 %25
    %27:f32 = load %26 align 4
    %14:f32 = load %0 align 4
    %15:f16x8 = load %16 align 16
    %17:f16x4 = load %16 align 16
    %18:f32x4 = mma %19 %15 %17
    %20:f32 = extract %18 lane 0
    store %1 %20 align 4
    store %1 %14 align 4
    yield %27
  }
}
`},
	{"a loop that may have no iteration loads ahead under a guard", prefetchOne, `
gridloop %9:i64 {
  for %6 %9 %8 do %10:i64 {
    %11:*f32 = ptradd %0 %10
    %12:f32 = load %11 align 4
    barrier
    store %4 %12 align 4
    barrier
    %15:f16x8 = load %16 align 16
    %17:f16x4 = load %16 align 16
    %18:f32x4 = mma %19 %15 %17
    %20:f32 = extract %18 lane 0
    store %1 %20 align 4
    yield
  }
}
`, `
gridloop %9:i64 {
  %30:bool = cmplt %6 %9
  %21:*f32 = ptradd %0 %6
  %31:f32 = const 0
  %22:f32 = guarded %30 %21 %31 align 4
  %29:f32 = for %6 %9 %8 %22 do %10:i64 %28:f32 {
    %11:*f32 = ptradd %0 %10
    barrier
    store %4 %28 align 4
    barrier
    %23:i64 = add %10 %8
    %24:i64 = sub %9 %8
    %25:i64 = min %23 %24
    %26:*f32 = ptradd %0 %25
    %27:f32 = load %26 align 4
    %15:f16x8 = load %16 align 16
    %17:f16x4 = load %16 align 16
    %18:f32x4 = mma %19 %15 %17
    %20:f32 = extract %18 lane 0
    store %1 %20 align 4
    yield %27
  }
}
`},
}

const rewriteHead = `program "rewrite"
param %0:*f32 buffer slot 0 name "x" align 16 bytes 4096 read
param %1:*f32 buffer slot 1 name "y" align 16 bytes 4096 read write
grid 1
block 64
%2:f32 = const 1
%3:bool = const 1
%6:i64 = const 0
%7:i64 = const 4
%8:i64 = const 1
%19:f32x4 = const 0
%4:*f32@shared = alloca count 64 align 16
%5:*f32@shared = alloca count 64 align 16
%16:*f16@shared = alloca count 64 align 16`

func TestRewrites(t *testing.T) { rewrites(t, rewriteCases) }

func rewrites(t *testing.T, cases []rewriteCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := program.Parse(rewriteHead + c.in)
			if err != nil {
				t.Fatal(err)
			}
			c.pass(p)
			if err := program.VerifyGPU(p); err != nil {
				t.Fatal(err)
			}
			want := c.want
			if want == "" {
				want = c.in
			}
			if got := program.Print(p); got != rewriteHead+want {
				t.Errorf("got\n%s\nwant\n%s", got, rewriteHead+want)
			}
		})
	}
}

// prefetchOne runs the pass with a register for loads.
func prefetchOne(p *program.Program) {
	p.Options[program.Panel] = 1
	prefetchTiles(p)
	p.Options[program.Panel] = 0
}
