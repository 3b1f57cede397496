package packed

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"tgc/gguf"
	"tgc/internal/oracle"
	"tgc/ir"
)

// TestOracle decodes every recorded tensor, in every layout, and wants the
// recorded values bit for bit (-0 equals +0).
func TestOracle(t *testing.T) {
	checked := make(map[string]bool)
	for _, path := range oracle.Files(t, "quant", "*.gguf") {
		name := strings.TrimSuffix(filepath.Base(path), ".gguf")
		checked[strings.ToUpper(name)] = true
		t.Run(name, func(t *testing.T) { checkFile(t, path) })
	}
	for _, f := range All() {
		if f.Name != "F32" && !checked[f.Name] {
			t.Errorf("no recorded tensor of type %s", f.Name)
		}
	}
}

func checkFile(t *testing.T, path string) {
	file, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	x, _ := file.Tensor("x")
	ref, _ := file.Tensor("ref")
	f, ok := ByGGUF(uint32(x.Type))
	if !ok {
		t.Fatalf("no row for %s", x.Type)
	}
	if info := x.Type.Info(); f.Name != info.Name || f.BlockElems != info.Elements || f.BlockBytes != info.Bytes {
		t.Fatalf("row is %s %d %d, the file format says %+v", f.Name, f.BlockElems, f.BlockBytes, info)
	}
	rows, length := int64(x.Rows()), int64(x.RowLength())
	layouts := []Layout{Identity, Planes}
	if f.IsPlain() {
		layouts = layouts[:1]
	}
	for _, layout := range layouts {
		blocks := length / int64(f.BlockElems)
		data := x.Data()
		if layout != Identity {
			data = Convert(f, rows, blocks, Identity, layout, data)
		}
		wrong := 0
		got := decodeAll(t, f, layout.Place(f, rows, blocks), data, rows, length)
		for i, v := range got {
			want := math.Float32frombits(binary.LittleEndian.Uint32(ref.Data()[4*i:]))
			if v != want {
				if wrong++; wrong <= 3 {
					t.Errorf("%s %s element %d: %g, want %g", f.Name, layout.Name(), i, v, want)
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%s %s: %d of %d wrong", f.Name, layout.Name(), wrong, len(got))
		}
	}
}

// decodeAll evaluates the row's expression for every element.
func decodeAll(t *testing.T, f *Format, place Placement, data []byte, rows, length int64) []float32 {
	t.Helper()
	a := ir.NewArena()
	row, k := a.Range(0, a.Index(rows)), a.Range(1, a.Index(length))
	e := newEvaluator(f, place, data, f.Decode(a, bufferFor(a, f, rows, length), row, k))
	out := make([]float32, 0, rows*length)
	for r := range rows {
		for i := range length {
			e.vars[row], e.vars[k] = r, i
			v, err := e.run()
			if err != nil {
				t.Fatalf("%s row %d element %d: %v", f.Name, r, i, err)
			}
			out = append(out, float32(v))
		}
	}
	return out
}

// bufferFor is the PARAM that Decode reads.
func bufferFor(a *ir.Arena, f *Format, rows, length int64) *ir.UOp {
	if f.IsPlain() {
		return a.Make(ir.OpParam, f.Plain, ir.ParamArg{}, a.Index(rows), a.Index(length))
	}
	return a.Make(ir.OpParam, ir.U8, ir.ParamArg{Format: f.Name}, a.Index(rows), a.Index(length))
}
