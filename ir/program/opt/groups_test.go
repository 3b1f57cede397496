package opt_test

import (
	"context"
	"strings"
	"testing"

	"tgc/internal/programtest"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/runtime/interp"
	"tgc/target"
)

// Loops of products of warpgroups compute the same with two sets of tiles, and store in one of them behind
// all products of an iteration.
func TestDoubleBufferOfGroups(t *testing.T) {
	desc, err := target.ForGPU(90, true)
	if err != nil {
		t.Fatal(err)
	}
	desc.SM = program.CopySM - 1
	for _, sums := range []programtest.GroupSums{programtest.CarriedVector, programtest.CarriedScalars, programtest.AddedVector} {
		g := programtest.GroupProduct{Columns: 64, Elem: ir.BF16, Steps: 4, Sums: sums}
		text := bufferedGroups(t, g, desc)
		_, loop, _ := strings.Cut(text, "= for")
		first, rest, _ := strings.Cut(loop, "groupmma")
		last := strings.LastIndex(rest, "groupmma")
		between, behind := rest[:last], rest[last:]
		if strings.Count(first, "barrier") != 1 || strings.Contains(first+between, "store") || strings.Count(behind, "store %") < 3 {
			t.Errorf("not filled behind the products:\n%s", text)
		}
		optimised, err := opt.Run(g.Program(), desc)
		if err != nil {
			t.Fatal(err)
		}
		checkGroups(t, g, optimised)
	}
}

// Asynchronous copies begin in front of all products of an iteration, and the next one waits for them before its barrier.
func TestCopiesOfGroups(t *testing.T) {
	desc, err := target.ForGPU(90, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, columns := range []int{16, 64, 128} {
		g := programtest.GroupProduct{Columns: columns, Elem: ir.F16, Steps: 3}
		text := bufferedGroups(t, g, desc)
		_, loop, _ := strings.Cut(text, "= for")
		loop, _, _ = strings.Cut(loop, "\n  }\n  waitcopies\n")
		first := strings.Index(loop, "groupmma")
		wait, barrier, copies := strings.Index(loop, "waitcopies"), strings.Index(loop, "barrier"), strings.Index(loop, "copyasync")
		if wait < 0 || barrier < wait || copies < barrier || first < strings.LastIndex(loop, "copyasync") || strings.Contains(loop, "store") {
			t.Errorf("not filled by copies:\n%s", text)
		}
		for _, missing := range []string{"    waitcopies\n", "  waitcopies\n"} {
			q, err := program.Parse(strings.Replace(text, missing, "", 1))
			if err != nil {
				t.Fatal(err)
			}
			if err := runGroups(g, q); err == nil {
				t.Errorf("no fault without %q", missing)
			}
		}
	}
}

func runGroups(g programtest.GroupProduct, p *program.Program) error {
	buffers := g.Inputs()
	args := make([]interp.Arg, len(p.Params))
	for i := range p.Params {
		args[i].Bytes = buffers[p.Params[i].Slot]
	}
	if err := interp.RunProgram(p, args, 0, p.Units()); err != nil {
		return err
	}
	return g.Check(buffers[2])
}

// bufferedGroups is the program of a product with two sets of tiles, which computes the product.
func bufferedGroups(t *testing.T, g programtest.GroupProduct, desc *target.Desc) string {
	t.Helper()
	text, err := opt.RunPass(context.Background(), "double-buffer", program.Print(g.Program()), desc)
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	checkGroups(t, g, p)
	return text
}

func checkGroups(t *testing.T, g programtest.GroupProduct, p *program.Program) {
	t.Helper()
	if err := runGroups(g, p); err != nil {
		t.Errorf("%v\n%s", err, program.Print(p))
	}
}

const filledGroup = `program "group"
grid 1
block 128
%0:f32x4 = const 0
%1:f16x8 = const 1
%2:i64 = const 8
%3:*f16@shared = alloca count 4096 align 1024
%4:*f16@shared = alloca count 4096 align 1024
gridloop %5:i64 {
  %6:i32 = threadindex lane 0
  %7:i64 = cast %6
  %8:i64 = mul %7 %2
  %9:*f16@shared = ptradd %3 %8
  store %9 %1 align 16
  %10:*f16@shared = ptradd %4 %8
  store %10 %1 align 16
  barrier
  %11:f32x4 = groupmma %0 %3 %4
  barrier
  store %9 %1 align 16
}
`

// Products read what barriers are between: the one behind stores, and the one ahead of others.
func TestBarriersAroundGroups(t *testing.T) {
	desc, err := target.ForGPU(90, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"eliminate-barriers", "gather-fills"} {
		text, err := opt.RunPass(context.Background(), name, filledGroup, desc)
		if err != nil {
			t.Fatal(err)
		}
		p, err := program.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(text, "barrier") != 2 {
			t.Errorf("%s:\n%s", name, text)
		}
		if err := interp.RunProgram(p, nil, 0, 1); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}
