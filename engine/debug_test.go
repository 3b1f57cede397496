package engine

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"tgc/internal/cudatools"
	"tgc/ir"
	"tgc/target"
)

// debugMarks are what the levels of TGC_DEBUG print of a sum on a GPU, each found on that
// level and those above it only.
var debugMarks = [][]string{
	{"1 kernels in 1 launches", " ms  rangeify", " grid ["},
	{"  why   ", "  plan  "},
	{"for r0:64: ", "applied"},
	{"program \"", "gridloop "},
	{".visible .entry", "ld.global"},
	{"LDG", "EXIT"},
}

// A level prints what it says, and nothing of the next one.
func TestDebugLevels(t *testing.T) {
	a := ir.NewArena()
	root, err := ir.Parse(a, `%0 = buffer f32 [0] 64 256
%1 = buffer f32 [1] 256
%2 = reshape f32 %1 1 256
%3 = expand f32 %2 64 256
%4 = mul f32 %0 %3
%5 = reduce_axes f32 [add] %4 1
%6 = reshape f32 %5 64
%7 = reshape f32 2.0:f32 1
%8 = expand f32 %7 64
%9 = max f32 %6 %8
%10 = buffer f32 [2] 64
%11 = iota idx 64
%12 = assign f32 %10 %9 %11
%13 = sink void %12
`)
	if err != nil {
		t.Fatal(err)
	}
	desc, err := target.Parse("ptx:sm_75")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compile(t.Context(), root, desc, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if len(debugMarks) != len(DebugLevels) {
		t.Fatalf("%d levels, marks of %d", len(DebugLevels), len(debugMarks))
	}
	before := ""
	for level := 1; level <= len(DebugLevels); level++ {
		var out bytes.Buffer
		if err := c.explainDebug(t.Context(), &out, level); err != nil {
			t.Fatal(err)
		}
		tools := cudatools.FromEnvironment()
		for i, marks := range debugMarks {
			if i+1 == debugAssembly && (tools.PtxasPath == "" || tools.NvdisasmPath == "") {
				continue
			}
			for _, mark := range marks {
				if got, want := strings.Contains(out.String(), mark), i < level; got != want {
					t.Errorf("level %d prints %q: %v, want %v:\n%.2000s", level, mark, got, want, out.String())
				}
			}
		}
		if out.Len() < len(before) {
			t.Errorf("level %d prints less than the one before", level)
		}
		before = out.String()
	}
}

// The table of levels in the document is the one here.
func TestDebugDocument(t *testing.T) {
	text, err := os.ReadFile("../docs/debugging.md")
	if err != nil {
		t.Fatal(err)
	}
	table := "| level | adds |\n|---|---|\n"
	for i, l := range DebugLevels {
		table += fmt.Sprintf("| %d | %s |\n", i+1, l.Doc)
	}
	if !strings.Contains(string(text), table+"\n") {
		t.Errorf("docs/debugging.md has another table than\n%s", table)
	}
}
