package ir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOpsDocument keeps docs/ops.md equal to the op table (-update rewrites
// it).
func TestOpsDocument(t *testing.T) {
	path := filepath.Join("..", "docs", "ops.md")
	got := opsDocument()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what the table says; run go test ./ir -update (-want +got):\n%s", path, diff)
	}
}

func opsDocument() string {
	var b strings.Builder
	b.WriteString("# The ops\n\nGenerated from the table in `ir/op.go` by `go test ./ir -update`. The text form writes a node as\n`%name = op dtype [arg] sources`; see `ir/text.go`. What programs and models are built with is listed in [operations.md](operations.md).\n\n")
	b.WriteString("Dtypes: `bool`, `i8` to `i64`, `u8` to `u64`, `f8e4m3`, `f8e5m2`, `f16`, `bf16`, `f32`, `f64`, `idx` (a mathematical\ninteger, gone before the program) and `void`.\n")
	for _, section := range []struct {
		title string
		has   func(info *OpInfo) bool
	}{
		{"Scalar arithmetic: every form", func(info *OpInfo) bool { return info.Forms == FormAll && info.Type != TypeVoid }},
		{"Tensor graph", func(info *OpInfo) bool { return info.Forms == FormTensor }},
		{"Kernels", func(info *OpInfo) bool { return info.Forms == FormKernel }},
		{"Lists", func(info *OpInfo) bool { return info.Forms == FormAll && info.Type == TypeVoid }},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n| op | sources | arg | dtype | meaning |\n|---|---|---|---|---|\n", section.title)
		for o := OpConst; int(o) < NumOps; o++ {
			info := o.Info()
			if !section.has(info) {
				continue
			}
			arity := "varies"
			if info.Arity >= 0 {
				arity = fmt.Sprint(info.Arity)
			}
			meaning := strings.NewReplacer("|", "\\|", "*", "\\*", "<<", "`<<`", ">>", "`>>`").Replace(info.Doc)
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", info.Name, arity, argNames[info.Arg], typeNames[info.Type], meaning)
		}
	}
	return b.String()
}

var argNames = map[ArgKind]string{
	ArgNone: "", ArgConst: "value", ArgInt: "integer", ArgAxes: "axes", ArgVar: "name lo..hi", ArgBuffer: "id [format]", ArgTable: "bytes",
	ArgParam: "slot [format]", ArgRange: "id", ArgField: "format.field", ArgReduce: "op or tuple N", ArgStage: "space", ArgValue: "id",
}

var typeNames = map[DTypeRule]string{
	TypeFree: "stated", TypeSame: "all one", TypeSame0: "of source 0", TypeCompare: "sources one, gives bool", TypeWhere: "bool, then two of the result's",
	TypeFloat: "all one float", TypeShift: "all one integer", TypeIdx: "idx", TypeVoid: "void",
}

// Every op has a name, a meaning and a place in some form.
func TestTableIsComplete(t *testing.T) {
	seen := make(map[string]Op)
	for o := OpConst; int(o) < NumOps; o++ {
		info := o.Info()
		if info.Name == "" || info.Doc == "" || info.Forms == 0 {
			t.Errorf("op %d: incomplete row %+v", o, *info)
		}
		if other, ok := seen[info.Name]; ok {
			t.Errorf("ops %d and %d are both called %s", o, other, info.Name)
		}
		seen[info.Name] = o
		if got, ok := ParseOp(info.Name); !ok || got != o {
			t.Errorf("ParseOp(%q) = %v", info.Name, got)
		}
	}
}
