package kernel_test

import (
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/pass"
)

// Passes over programs can be left out one by one (--without): the program is slower,
// and computes the same, without races in shared memory. The verifier accepts it after every row.
func TestProgramsWithoutAPass(t *testing.T) {
	for _, c := range []struct {
		name, plan string
		build      func(b *builder) *ir.UOp
	}{
		{"rows that are read anew", rowsReread, func(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 12, 2048, true) }},
		{"rows loaded ahead", rowsLoadedAhead, func(b *builder) *ir.UOp { return packedMatvec(b, "Q6_K", 12, 512, true) }},
		{"more rows than registers", manyRows, func(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 12, 1024, false) }},
		{"tiles", "UPCAST s0 2; LOCAL s0 4; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s0; STAGE s1; MMA r0; FMA",
			func(b *builder) *ir.UOp { return floatMatmul(b, ir.F32, 16, 32, 64) }},
		{"a norm after a barrier", "VECTOR r0 4; WARP r0 32; LOCAL s0 4; STAGE r0; FMA; PRELOAD p2", func(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 8, 512, true) }},
		{"tiles of columns", "UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s0; MMA r1; FMA",
			func(b *builder) *ir.UOp { return superblockMatmul(b, "Q6_K", 16, 32, 512) }},
		{"stages", heldGroups, func(b *builder) *ir.UOp { return groups(b, 8, 16, 32) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan, err := plan.Parse(c.plan)
			if err != nil {
				t.Fatal(err)
			}
			changed := make(map[string]bool)
			control := &pass.Control{Verify: true, Trace: true, OnChange: func(row pass.Info, _, _, _ string) { changed[row.Name] = true }}
			lower := func(control *pass.Control) {
				b := newBuilder()
				sink := c.build(b)
				p, err := kernel.LowerWith(t.Context(), b.Arena, sink, plan, hopper(t), "kernel", control)
				if err != nil {
					t.Fatal(err)
				}
				if err := program.VerifyGPU(p); err != nil {
					t.Fatal(err)
				}
				compare(t, b.Arena, sink, p, plan, nil)
				emulate(t, sink, p, nil)
			}
			lower(control)
			for _, row := range opt.Passes.Infos() {
				if changed[row.Name] && !row.Required {
					lower(&pass.Control{Verify: true, Without: map[string]bool{row.Name: true}})
				}
			}
		})
	}
}
