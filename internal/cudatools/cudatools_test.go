package cudatools

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const copyKernel = `.version 7.4
.target sm_75
.address_size 64
.visible .entry copy(.param .u64 to, .param .u64 from)
{
	.reg .b32 %r<4>;
	.reg .b64 %d<2>;
	.shared .align 16 .b8 room[64];
	ld.param.u64 %d0, [to];
	ld.param.u64 %d1, [from];
	ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d1];
	st.shared.b32 [room], %r3;
	bar.sync 0;
	ld.shared.b32 %r3, [room+4];
	st.global.v2.b32 [%d0], {%r0, %r3};
	ret;
}
`

func TestAssembleAndList(t *testing.T) {
	tools := FromEnvironment()
	if tools.PtxasPath == "" {
		t.Skip("no ptxas")
	}
	a, err := tools.Ptxas(context.Background(), copyKernel, "sm_75")
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Cubin) == 0 || a.Registers == 0 || a.Shared != 64 || a.SpillLoads != 0 {
		t.Errorf("cubin of %d bytes, %d registers, %d bytes shared: %s", len(a.Cubin), a.Registers, a.Shared, a.Log)
	}
	if _, err := tools.Ptxas(context.Background(), "nonsense", "sm_75"); err == nil || errors.Is(err, ErrArchitecture) {
		t.Errorf("nonsense assembles: %v", err)
	}
	if _, err := tools.Ptxas(context.Background(), copyKernel, "sm_999"); !errors.Is(err, ErrArchitecture) {
		t.Errorf("got %v, want an unknown architecture", err)
	}
	if tools.NvdisasmPath == "" {
		t.Skip("no nvdisasm")
	}
	l, err := tools.Nvdisasm(context.Background(), a.Cubin)
	if err != nil {
		t.Fatal(err)
	}
	if l.ByOpcode["LDG"] == 0 || l.WidestLoad["global"] < 4 || l.WidestStore["global"] != 8 || l.ByPipe["memory"] < 4 || l.Instructions < 6 {
		t.Errorf("%+v", l)
	}
	if l.ByPipe["other"] != 0 {
		t.Errorf("opcodes of no pipe: %v", l.ByOpcode)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "bin", "ptxas")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{dir, filepath.Join(dir, "bin")} {
		if got := Find(root).PtxasPath; got != path {
			t.Errorf("Find(%s) = %s, want %s", root, got, path)
		}
	}
	if _, err := (Tools{}).Ptxas(context.Background(), copyKernel, "sm_75"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestSummarise(t *testing.T) {
	l := summarise(`        /*0000*/                   LDG.E.128.CONSTANT R4, [R2.64] ;
        /*0010*/              @!P0 STG.E.U8 [R2.64], R5 ;
        /*0020*/                   IDP.4A.U8.S8 R0, R4, R5, R0 ;
        /*0030*/              @UP0 ULDC.64 UR4, c[0x0][0x160] ;
        /*0040*/                   EXIT ;
.L_x_0:
        /*0050*/                   BRA ` + "`(.L_x_0)" + `;
        /*0060*/                   NOP;
`)
	if l.Instructions != 5 || l.WidestLoad["global"] != 16 || l.WidestStore["global"] != 1 || l.ByPipe["dot"] != 1 || l.ByPipe["uniform"] != 1 {
		t.Errorf("%+v", l)
	}
}

// Loops of the entry count with their trips; the subroutine behind the last exit
// does not.
func TestExecuted(t *testing.T) {
	l := summarise(`
.text.k:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   IADD3 R2, R2, 0x1, RZ ;
.L_x_0:
        /*0020*/                   FADD R4, R4, R5 ;
        /*0030*/               @P0 BRA ` + "`(.L_x_0)" + ` ;
        /*0040*/              @!P1 BRA ` + "`(.L_x_2)" + ` ;
        /*0050*/                   STG.E [R2.64], R4 ;
.L_x_2:
        /*0060*/               @P1 BRA ` + "`(.L_x_1)" + ` ;
        /*0070*/                   EXIT ;
$k$slow:
.L_x_3:
        /*0080*/                   MUFU.RCP R4, R4 ;
        /*0090*/               @P0 BRA ` + "`(.L_x_3)" + ` ;
        /*00a0*/                   RET.REL.NODEC R8 ` + "`(k)" + ` ;
`)
	if l.Entry != 8 || len(l.Loops) != 2 || l.Loops[0] != (Loop{1, 6}) || l.Loops[1] != (Loop{2, 3}) {
		t.Fatalf("entry of %d instructions, loops %v", l.Entry, l.Loops)
	}
	// 2 outside, 4 in the outer loop alone, 2 in both.
	if got := l.Executed([]int64{3, 5}); got != 2+4*3+2*15 {
		t.Errorf("%d instructions", got)
	}
}

// Instructions have the line of the PTX, labels none, and marks are no lines.
func TestReadLines(t *testing.T) {
	got := readLines(`
//--------------------- .text.k --------------------------
	.section	.text.k,"ax",@progbits
        .global         k
.text.k:
	//## File ".nv_debug_ptx_txt", line 12
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/              @!P0 BRA ` + "`(.L_x_0)" + ` ;
	//## File ".nv_debug_ptx_txt.1", line 26
        /*0020*/                   EXIT ;
`)
	want := []MachineLine{{"/*0000*/ LDC R1, c[0x0][0x28] ;", 12}, {".L_x_0:", 0}, {"/*0010*/ @!P0 BRA `(.L_x_0) ;", 12}, {"/*0020*/ EXIT ;", 26}}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestLines(t *testing.T) {
	tools := FromEnvironment()
	if tools.PtxasPath == "" || tools.NvdisasmPath == "" {
		t.Skip("no ptxas or nvdisasm")
	}
	list, err := tools.Lines(t.Context(), copyKernel, "sm_75")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(copyKernel, "\n")
	for _, c := range []struct{ machine, ptx string }{{"STG", "st.global.v2.b32"}, {"BAR.SYNC", "bar.sync"}, {"LDG", "ld.global.v4"}} {
		i := slices.IndexFunc(list, func(l MachineLine) bool { return strings.Contains(l.Text, c.machine) })
		if i < 0 || list[i].Line < 1 || !strings.Contains(lines[list[i].Line-1], c.ptx) {
			t.Errorf("%s is not of a line with %s: %v", c.machine, c.ptx, list)
		}
	}
}
