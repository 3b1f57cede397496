package dep_test

import (
	"strings"
	"testing"

	"tgc/ir/program"
	"tgc/ir/program/dep"
)

const text = `program "dep"
param %0:*f32 buffer slot 0 name "x" align 16 bytes 4096 read
param %1:*f32 buffer slot 1 name "y" align 16 bytes 4096 read write
grid 1
block 32
%2:i64 = const 0
%3:i64 = const 4
%4:i64 = const 1
%5:f32 = const 0
%6:*f32@shared = alloca count 64 align 16
%7:bool = const 1
gridloop %8:i64 {
  %9:*f32 = ptradd %0 %8
  %10:*i32 = bitcast %9
  %11:i32x4 = load %10 align 4
  %12:*f32@shared = ptradd %6 %8
  %13:f32 = for %2 %3 %4 %5 do %14:i64 %15:f32 {
    %16:i64 = mul %14 %8
    %17:*f32 = ptradd %1 %16
    %18:f32 = load %17 align 4
    %19:f32 = guarded %7 %12 %15 align 4
    %20:f32 = add %18 %19
    yield %20
  }
  store %1 %13 align 4
}
`

func parsed(t *testing.T) (p *program.Program, values map[int]*program.Value) {
	t.Helper()
	p, err := program.Parse(text)
	if err == nil {
		err = program.VerifyGPU(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	values = make(map[int]*program.Value)
	p.Body.Each(func(in *program.Instr) {
		for _, v := range append(in.Results, in.Result) {
			if v != nil {
				values[v.ID] = v
			}
		}
	})
	return p, values
}

// Pointers lead into parameters and arrays, whatever they are computed by.
func TestMemory(t *testing.T) {
	p, v := parsed(t)
	m := dep.MemoryOf(p)
	if got := m.Param(v[10]); got != &p.Params[0] {
		t.Errorf("a bitcast of a pointer into x leads into %v", got)
	}
	if got := m.Param(v[17]); got != &p.Params[1] {
		t.Errorf("a pointer into y, made in a loop, leads into %v", got)
	}
	if m.Root(v[12]) != v[6] || m.Param(v[12]) != nil {
		t.Errorf("a pointer into a shared array leads into %s", m.Root(v[12]))
	}
	if !m.ReadOnly(v[10]) || m.ReadOnly(v[17]) || m.ReadOnly(v[12]) {
		t.Error("of x, y and an array only x is read only")
	}
}

// Every instruction stands in the table of effects: what is not there would count as
// pure.
func TestEffectsOfEveryInstruction(t *testing.T) {
	for op := program.Op(0); !strings.HasPrefix(op.String(), "op("); op++ {
		if !dep.Known(op) {
			t.Errorf("%s has no effects", op)
		}
	}
	for _, c := range []struct {
		op         program.Op
		pure, free bool
	}{
		{program.Dot4, true, true}, {program.Load, false, true}, {program.Guarded, false, true}, {program.ShuffleLane, false, true},
		{program.Store, false, false}, {program.Atomic, false, false}, {program.Barrier, false, false}, {program.For, false, false},
		{program.Alloca, false, false}, {program.Prefetch, false, false}, {program.WaitGrid, false, false},
	} {
		in := &program.Instr{Op: c.op}
		if dep.Pure(in) != c.pure || dep.Free(in) != c.free {
			t.Errorf("%s: pure %t, free %t", c.op, dep.Pure(in), dep.Free(in))
		}
	}
}

// Another iteration computes what the index decides, and neither what is loaded nor
// what is carried.
func TestLoopSlice(t *testing.T) {
	p, v := parsed(t)
	var loop *program.Instr
	p.Body.Each(func(in *program.Instr) {
		if in.Op == program.For {
			loop = in
		}
	})
	s := dep.NewLoopSlice(loop, dep.Pure)
	byResult := func(v *program.Value) *program.Instr { return &loop.Body.Instrs[s.Makers[v]] }
	if !s.Reaches(byResult(v[18])) || s.Reaches(byResult(v[19])) || s.Reaches(byResult(v[20])) {
		t.Error("want the load from y, not the guarded load or what is computed from the two")
	}
	s.Take(byResult(v[18]))
	if !s.In[s.Makers[v[16]]] || !s.In[s.Makers[v[17]]] || len(s.In) != 2 {
		t.Errorf("the load's address takes instructions %v", s.In)
	}
}

func TestPressure(t *testing.T) {
	p, err := program.Parse(`program "pressure"
param %0:*f32 buffer slot 0 name "x" align 16 bytes 4096 read
param %1:*f32 buffer slot 1 name "y" align 16 bytes 4096 read write
grid 1
gridloop %2:i64 {
  %3:f32x4 = load %0 align 16
  %4:f32x4 = load %1 align 16
  %5:f32x4 = add %3 %4
  store %1 %5 align 16
}
`)
	if err != nil {
		t.Fatal(err)
	}
	body := p.Body.Instrs[0].Body
	all := dep.Pressure(body, func(*program.Instr) bool { return true })
	computed := dep.Pressure(body, func(in *program.Instr) bool { return in.Op != program.Load })
	if all != 8 || computed != 4 {
		t.Errorf("%d registers, %d without loads, want 8 and 4", all, computed)
	}
	if last := dep.LastUses(body); last[body.Instrs[0].Result] != 2 {
		t.Errorf("the first load is used last by instruction %d, want 2", last[body.Instrs[0].Result])
	}
}
