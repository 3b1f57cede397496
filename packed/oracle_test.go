package packed_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"tgc/gguf"
	"tgc/internal/oracle"
	"tgc/packed"
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
	for _, f := range packed.All() {
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
	f, ok := packed.ByGGUF(uint32(x.Type))
	if !ok {
		t.Fatalf("no row for %s", x.Type)
	}
	if name, err := file.String("oracle.type"); !strings.EqualFold(f.Name, name) || err != nil {
		t.Fatalf("row is %s, want %s (%v)", f.Name, name, err)
	}
	rows, length := int64(x.Rows()), int64(x.RowLength())
	layouts := []packed.Layout{packed.Identity, packed.Planes, packed.Records}
	if f.IsPlain() {
		layouts = layouts[:1]
	}
	for _, layout := range layouts {
		blocks := length / int64(f.BlockElems)
		data := x.Data()
		if layout != packed.Identity {
			data = packed.Convert(f, rows, blocks, packed.Identity, layout, data)
		}
		wrong := 0
		got := packed.DecodeAll(t, f, layout.Place(f, rows, blocks), data, rows, length)
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

var encodable = []string{"F32", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q6_K"}

func lookup(t *testing.T, name string) *packed.Format {
	t.Helper()
	f, ok := packed.Lookup(name)
	if !ok {
		t.Fatalf("no format %q", name)
	}
	return f
}

// TestFillFile packs several chunks straight into a GGUF file.
func TestFillFile(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	x := make([]float32, 1<<17) // 139,264 bytes as Q8_0
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	w := gguf.NewWriter()
	for _, name := range encodable {
		f := lookup(t, name)
		w.Add(name, gguf.Type(f.GGUF), []int{1 << 10, 1 << 7}, f.Fill(x))
	}
	data, err := w.Bytes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	file, err := gguf.OpenBytes("test", data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range file.Tensors() {
		stored := &file.Tensors()[i]
		want := make([]byte, len(stored.Data()))
		if err := lookup(t, stored.Name).Encode(want, x); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(stored.Data(), want) {
			t.Errorf("%s: the file holds other bytes than Encode makes", stored.Name)
		}
	}
}
