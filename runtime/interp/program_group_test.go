package interp_test

import (
	"strings"
	"testing"

	"tgc/internal/programtest"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime/interp"
)

func runGroupProduct(p *program.Program, buffers map[int][]byte) error {
	args := make([]interp.Arg, len(p.Params))
	for i := range p.Params {
		args[i].Bytes = buffers[p.Params[i].Slot]
	}
	return interp.RunProgram(p, args, 0, p.Units())
}

func TestGroupProducts(t *testing.T) {
	for _, g := range programtest.GroupProducts() {
		t.Run(g.Name(), func(t *testing.T) {
			buffers := g.Inputs()
			if err := runGroupProduct(g.Program(), buffers); err != nil {
				t.Fatal(err)
			}
			if err := g.Check(buffers[2]); err != nil {
				t.Error(err)
			}
		})
	}
}

// A product reads memory as loads do: inside of an array, with a barrier behind what is stored there.
func TestGroupProductFaults(t *testing.T) {
	var warp *program.Value // how many threads have one
	g := programtest.GroupProduct{Columns: 16, Elem: ir.F16, Steps: 2}
	for want, change := range map[string]func(in *program.Instr){
		"outside": func(in *program.Instr) {
			if in.Op == program.Alloca && in.Count == 16*64 {
				in.Count /= 2
			}
		},
		"not at the start of eight rows": func(in *program.Instr) {
			if in.Op == program.Const && in.Int == 48 { // points of the sum before the last product
				in.Int = 56
			}
		},
		"with align 8": func(in *program.Instr) {
			if in.Op == program.Alloca {
				in.Align = 8
			}
		},
		"have different pointers": func(in *program.Instr) {
			switch {
			case in.Op == program.Const && in.Int == 32:
				warp = in.Result
			case in.Op == program.Alu && in.Ir == ir.OpFloorDiv && warp != nil: // which warpgroup it is
				in.Args[1], warp = warp, nil
			}
		},
		"without a barrier": func(in *program.Instr) {
			if in.Op == program.Barrier {
				*in = program.Instr{Op: program.SyncWarp}
			}
		},
	} {
		p := g.Program()
		p.Body.Each(change)
		if err := runGroupProduct(p, g.Inputs()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
