package cuda

import (
	"fmt"
	"strings"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/target"
)

// The kernels of these tests are PTX by hand, chosen by the program's name, so
// that the package is tested without a renderer. The stub library runs C
// functions of the same names.
var bodies = map[string]string{
	// y[i] = x[i]*n, 16 elements a block; %d3 is n.
	"scale": `
	mov.u32 %r1, %tid.x;
	setp.ge.u32 %p1, %r1, 16;
	@%p1 bra END;
	mov.u32 %r2, %ctaid.x;
	mad.lo.u32 %r3, %r2, 16, %r1;
	mul.wide.u32 %d4, %r3, 4;
	add.u64 %d5, %d1, %d4;
	add.u64 %d6, %d2, %d4;
	ld.global.f32 %f1, [%d5];
	cvt.rn.f32.s64 %f2, %d3;
	mul.rn.f32 %f3, %f1, %f2;
	st.global.f32 [%d6], %f3;`,
	// A store far outside.
	"wild": `
	add.u64 %d4, %d2, 0x10000000000;
	st.global.u64 [%d4], %d3;`,
	// An array that is indexed by a value lives in local memory.
	"spills": `
	.local .align 16 .b8 array[4096];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %d4, %r1, 8;
	mov.u64 %d5, array;
	add.u64 %d5, %d5, %d4;
	st.local.u64 [%d5], %d3;
	ld.local.u64 %d6, [array + 256];
	st.global.u64 [%d2], %d6;`,
	// 64 KB of shared memory, which only a launch can ask for.
	"shared": `
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %d4, %r1, 4;
	mov.u64 %d5, dynamic;
	add.u64 %d5, %d5, %d4;
	st.shared.u32 [%d5 + 65000], %r1;`,
	"syntax": "\n\tSYNTAX;",
}

const dynamicShared = 65536 + 1024

// bodyOf is the longest entry that a name starts with.
func bodyOf(name string) string {
	best := ""
	for prefix := range bodies {
		if strings.HasPrefix(name, prefix) && len(prefix) > len(best) {
			best = prefix
		}
	}
	return best
}

// renderTest prints the body of a test program. A program whose name ends in
// "early" waits for its predecessor before it touches memory.
func renderTest(p *program.Program, desc *target.Desc) (*Rendered, error) {
	body := bodyOf(p.Name)
	if body == "" {
		return nil, fmt.Errorf("kernel %s: no such body", p.Name)
	}
	r := &Rendered{Entry: p.Name, Blocks: p.Units(), Block: [3]int{32, 1, 1}}
	_, arch, _ := strings.Cut(desc.Name, ":")
	arch, _, _ = strings.Cut(arch, "+")
	var b strings.Builder
	fmt.Fprintf(&b, ".version 7.8\n.target %s\n.address_size 64\n", map[bool]string{true: arch, false: "sm_75"}[arch == "sm_90a"])
	if arch == "sm_90a" {
		b.Reset()
		b.WriteString(".version 8.0\n.target sm_90a\n.address_size 64\n")
	}
	if body == "shared" {
		r.Shared, r.Dynamic = dynamicShared, true
		b.WriteString(".extern .shared .align 16 .b8 dynamic[];\n")
	}
	var params []string
	for i := range p.Params {
		r.Params = append(r.Params, i)
		params = append(params, fmt.Sprintf("\n\t.param .u64 p%d", i))
	}
	fmt.Fprintf(&b, ".visible .entry %s(%s)\n.maxntid 32, 1, 1\n{\n", r.Entry, strings.Join(params, ","))
	b.WriteString("\t.reg .pred %p<4>;\n\t.reg .b32 %r<8>;\n\t.reg .f32 %f<8>;\n\t.reg .b64 %d<12>;\n")
	for i := range p.Params {
		fmt.Fprintf(&b, "\tld.param.u64 %%d%d, [p%d];\n", i+1, i)
	}
	if strings.HasSuffix(p.Name, "early") {
		r.WaitsGrid = true
		if arch == "sm_90a" {
			b.WriteString("\tgriddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;\n")
		}
	}
	b.WriteString(bodies[body])
	b.WriteString("\nEND:\n\tret;\n}\n")
	r.Text = b.String()
	return r, nil
}

// scaleProgram has the parameters x, y and n; its name chooses the body.
func scaleProgram(name string, rows int64) *program.Program {
	b := program.NewBuilder(name)
	x := b.Buffer(0, ir.F32, "x", 32, rows*64)
	y := b.Buffer(1, ir.F32, "y", 64, rows*64)
	b.Access(x, true, false)
	b.Access(y, false, true)
	b.Var("n")
	b.SetGrid(rows)
	b.GridLoop(func(*program.Value) {})
	return b.Finish()
}
