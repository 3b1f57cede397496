package llvmc

import (
	"slices"
	"strings"
	"testing"
)

// Each instruction of the IR that has code has its line in the assembler text, and no other
// line has one.
func TestAssemble(t *testing.T) {
	c, err := Start(t.Context(), Options{Assembly: true, Workers: 1})
	if err != nil {
		t.Skip(err)
	}
	defer c.Close()
	const source = `declare float @llvm.sqrt.f32(float)

define void @f(float* %x, float* %y) {
entry:
	; %1:f32 = load
	%a = load float, float* %x

	%b = call float @llvm.sqrt.f32(float %a)
	%c = fadd float %a, %b
	store float %c, float* %y
	ret void
}
`
	text, err := c.Compile(t.Context(), []byte(source))
	if err != nil || !strings.Contains(string(text), ".loc") {
		t.Fatalf("no lines (%v):\n%s", err, text)
	}
	list, err := c.Assemble(t.Context(), []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var of []int
	for _, l := range list {
		if l.Line > 0 {
			of = append(of, l.Line)
		} else if !strings.HasSuffix(strings.Fields(l.Text)[0], ":") {
			t.Errorf("%q is of no line", l.Text)
		}
	}
	slices.Sort(of)
	if want := []int{6, 8, 9, 10, 11}; !slices.Equal(slices.Compact(of), want) {
		t.Errorf("lines %v of the IR, want %v: %v", of, want, list)
	}
}
