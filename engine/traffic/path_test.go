package traffic_test

import (
	"fmt"
	"testing"

	"tgc/engine/traffic"
	"tgc/ir/program"
)

// oneWarp is a program of one block of 32 threads that computes a body for each.
func oneWarp(t *testing.T, body string) *program.Program {
	t.Helper()
	p, err := program.Parse(`program "warp"
param %0:*f32 buffer slot 0 name "p0" align 64 bytes 65536 read write
grid 1
block 32
%1:i64 = const 0
%2:i64 = const 8
%3:i64 = const 1
gridloop %4:i64 {
  %5:i32 = threadindex lane 0
  %6:i64 = cast %5
` + body + `}
`)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Loads in a row pass together, those of which one's address is the other's value one after the other; what stands
// ahead of the wait for the kernel before costs nothing.
func TestPath(t *testing.T) {
	load := func(n, from int) string {
		return fmt.Sprintf("  %%%d:*f32 = ptradd %%0 %%%d\n  %%%d:f32 = load %%%d align 4\n", n, from, n+1, n)
	}
	follow := func(n, value int) string {
		return fmt.Sprintf("  %%%d:i64 = cast %%%d\n", n, value)
	}
	add := "  %20:f32 = add %11 %13\n  store %10 %20 align 4\n"
	together := traffic.Path(oneWarp(t, load(10, 6)+load(12, 4)+add), nil)
	chained := traffic.Path(oneWarp(t, load(10, 6)+follow(15, 11)+load(12, 15)+add), nil)
	ahead := traffic.Path(oneWarp(t, load(10, 6)+load(12, 4)+"  waitgrid\n"+add), nil)
	if together <= 0 || chained < 1.9*together || ahead > 0.1*together {
		t.Errorf("loads together %g cycles, one after the other %g, ahead of the wait %g", together, chained, ahead)
	}
	loop := `  %10:f32 = const 0
  %11:f32 = for %1 %2 %3 %10 do %12:i64 %13:f32 {
    %14:*f32 = ptradd %0 %12
    %15:f32 = load %14 align 4
    %16:f32 = add %13 %15
    yield %16
  }
  %17:*f32 = ptradd %0 %6
  store %17 %11 align 4
`
	if got := traffic.Path(oneWarp(t, loop), nil); got < 7*together || got > 9*together {
		t.Errorf("eight rounds that each wait for a load: %g cycles, one load %g", got, together)
	}
}

// Threads side by side share sectors and lines, threads far apart do not; words of one bank wait for one another.
func TestRequests(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       traffic.Requests
	}{
		{"side by side", "  %10:*f32 = ptradd %0 %6\n  %11:f32 = load %10 align 4\n  store %10 %11 align 4\n", traffic.Requests{Sectors: 8, Lines: 2}},
		{"eight words apart", "  %9:i64 = mul %6 %2\n  %10:*f32 = ptradd %0 %9\n  %11:f32 = load %10 align 4\n", traffic.Requests{Sectors: 32, Lines: 8}},
		{"all the same", "  %10:*f32 = ptradd %0 %4\n  %11:f32 = load %10 align 4\n", traffic.Requests{Sectors: 1, Lines: 1}},
		{"known from memory alone", "  %10:*f32 = ptradd %0 %1\n  %11:f32 = load %10 align 4\n  %12:i64 = cast %11\n  %13:*f32 = ptradd %0 %12\n  %14:f32 = load %13 align 4\n", traffic.Requests{Sectors: 1 + 4, Lines: 1 + 1}},
		{"eight rounds", "  for %1 %2 %3 do %9:i64 {\n    %10:*f32 = ptradd %0 %9\n    %11:f32 = load %10 align 4\n    store %10 %11 align 4\n    yield\n  }\n", traffic.Requests{Sectors: 16, Lines: 16}},
		{"shared, side by side", "  %9:*f32@shared = alloca count 1024 align 16\n  %10:*f32@shared = ptradd %9 %6\n  %11:f32 = load %10 align 4\n", traffic.Requests{Banks: 1}},
		{"shared, eight words apart", "  %8:i64 = mul %6 %2\n  %9:*f32@shared = alloca count 1024 align 16\n  %10:*f32@shared = ptradd %9 %8\n  %11:f32 = load %10 align 4\n", traffic.Requests{Banks: 8}},
	} {
		if got := traffic.RequestsOf(oneWarp(t, c.body), nil); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Copies pass while other work is done, until they are waited for.
func TestCopiesInPrograms(t *testing.T) {
	p, err := program.Parse(`program "copies"
param %0:*f32 buffer slot 0 name "x" align 16 bytes 4096 read
grid 2
block 32
%1:*f32@shared = alloca count 128 align 16
gridloop %2:i64 {
  copyasync %1 %0 bytes 16
  copyasync %1 %0 bytes 4
}
`)
	if err != nil {
		t.Fatal(err)
	}
	started := traffic.Path(p, nil)
	if pipes := traffic.Pipes(p, nil, 16); pipes[traffic.MemoryPipe] != 2*32*4 || traffic.Pipes(p, nil, 4)[traffic.MemoryPipe] != 2*32*10 {
		t.Errorf("pipes %v, want a load and a store for each copy", pipes)
	}
	body := p.Body.Instrs[len(p.Body.Instrs)-1].Body
	body.Instrs = append(body.Instrs, program.Instr{Op: program.WaitCopies})
	if waited := traffic.Path(p, nil); waited < started+100 {
		t.Errorf("%g cycles with a wait, %g without", waited, started)
	}
}
