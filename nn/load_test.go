package nn_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/nn"
	"tgc/runtime/interp"
	"tgc/safetensors"
	"tgc/tensor"
)

// Tensors of two files become parameters of other names: f32 as it is, bf16 and f16 widened,
// f64 rounded.
func TestLoadFile(t *testing.T) {
	folder := t.TempDir()
	half := binary.LittleEndian.AppendUint16(nil, 0x3e00)  // 1.5
	brain := binary.LittleEndian.AppendUint16(nil, 0xc0a0) // -5
	wide := binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Pi))
	write := func(file string, list ...safetensors.Tensor) {
		t.Helper()
		if err := safetensors.WriteFile(t.Context(), filepath.Join(folder, file), list, nil); err != nil {
			t.Fatal(err)
		}
	}
	write("1.safetensors", safetensors.Tensor{Name: "m.a", DType: safetensors.F16, Shape: []int{1}, Data: half},
		safetensors.Tensor{Name: "m.b", DType: safetensors.BF16, Shape: []int{1}, Data: brain})
	write("2.safetensors", safetensors.Tensor{Name: "m.c", DType: safetensors.F64, Shape: []int{1}, Data: wide},
		safetensors.Tensor{Name: "m.n", DType: safetensors.U32, Shape: []int{1}, Data: []byte{7, 0, 0, 0}},
		safetensors.Tensor{Name: "m.more", DType: safetensors.U8, Shape: []int{1}, Data: []byte{7}})
	index := `{"weight_map": {"m.a": "1.safetensors", "m.c": "2.safetensors"}}`
	if err := os.WriteFile(filepath.Join(folder, "model.safetensors.index.json"), []byte(index), 0o666); err != nil {
		t.Fatal(err)
	}

	g := tensor.NewGraph()
	p := nn.NewParameters(g)
	for _, name := range []string{"a", "b", "c", "kept"} {
		w := p.Weight(name, nn.Ones(), 1)
		g.Store(w, w.MulScalar(1))
	}
	n := p.State("n", ir.U32, nn.Zeros(), 1)
	g.Store(n, n.Add(g.Scalar(ir.U32, 1)))
	f, err := tensor.Compile(t.Context(), g, interp.New(interp.Options{}), engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := p.Load(t.Context(), f, p.Initial(1)); err != nil {
		t.Fatal(err)
	}
	name := func(parameter string) string {
		if parameter == "kept" {
			return ""
		}
		return "m." + parameter
	}
	unused, err := p.LoadFile(t.Context(), f, folder, name)
	if err != nil || !slices.Equal(unused, []string{"m.more"}) {
		t.Fatalf("unused %v, %v", unused, err)
	}
	for name, want := range map[string]float32{"a": 1.5, "b": -5, "c": float32(math.Pi), "kept": 1} {
		if got, err := tensor.Get[float32](t.Context(), f, name); err != nil || got[0] != want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	if got, err := tensor.Get[uint32](t.Context(), f, "n"); err != nil || got[0] != 7 {
		t.Errorf("n: %v, %v", got, err)
	}

	write("other.safetensors", safetensors.Tensor{Name: "a", DType: safetensors.F32, Shape: []int{2}, Data: make([]byte, 8)},
		safetensors.Tensor{Name: "n", DType: safetensors.F32, Shape: []int{1}, Data: make([]byte, 4)})
	for want, names := range map[string]map[string]string{
		`parameter "a" from "a": got F32[2], want f32[1]`: {"a": "a"},
		`parameter "n" from "n": got F32, want u32`:       {"n": "n"},
		`parameter "b": there is no tensor "m.b"`:         {"b": "m.b"},
	} {
		_, err := p.LoadFile(t.Context(), f, filepath.Join(folder, "other.safetensors"), func(p string) string { return names[p] })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
