package synth

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/x448/float16"

	"tgc/gguf"
	"tgc/internal/testkit"
	"tgc/packed"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestShapes pins what every model consists of.
func TestShapes(t *testing.T) {
	var b strings.Builder
	for _, s := range Shapes() {
		fmt.Fprintf(&b, "%s\n", s.Name)
		parameters, size := 0, 0
		counts := map[string]int{}
		for _, x := range s.Tensors() {
			row, err := x.Type.RowBytes(x.Dims[0])
			if err != nil {
				t.Fatalf("%s: %s: %v", s.Name, x.Name, err)
			}
			n := 1
			for _, d := range x.Dims {
				n *= d
			}
			parameters += n
			size += n / x.Dims[0] * row
			counts[x.Type.String()]++
		}
		types := make([]string, 0, len(counts))
		for name, n := range counts {
			types = append(types, fmt.Sprintf("%s %d", name, n))
		}
		slices.Sort(types)
		fmt.Fprintf(&b, "  %d parameters in %d bytes; tensors: %s\n", parameters, size, strings.Join(types, ", "))
	}
	golden(t, "shapes.txt", b.String())
}

// TestTinyFile pins metadata and tensors of the built-in model.
func TestTinyFile(t *testing.T) {
	f := memory(t, Tiny, 1)
	var b strings.Builder
	for key, v := range f.Metadata() {
		fmt.Fprintf(&b, "%s = %s %s\n", key, v.Type(), v)
	}
	for i := range f.Tensors() {
		fmt.Fprintf(&b, "%s\n", &f.Tensors()[i])
	}
	golden(t, "tiny.txt", b.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
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
		t.Errorf("%s differs (-update rewrites it):\n%s", path, diff)
	}
}

func memory(t testing.TB, name string, seed uint64) *gguf.File {
	t.Helper()
	shape, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Memory(context.Background(), shape, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// TestDeterminism compares one, many and differently seeded generations, in
// memory and in a file.
func TestDeterminism(t *testing.T) {
	shape, err := Lookup(Tiny)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	old := runtime.GOMAXPROCS(1)
	err = Write(context.Background(), shape, path, 7, nil)
	runtime.GOMAXPROCS(max(old, 4))
	defer runtime.GOMAXPROCS(old)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer serial.Close()
	parallel, other := memory(t, Tiny, 7), memory(t, Tiny, 8)
	for i := range serial.Tensors() {
		a, b, c := &serial.Tensors()[i], &parallel.Tensors()[i], &other.Tensors()[i]
		if !bytes.Equal(a.Data(), b.Data()) {
			t.Errorf("%v depends on the number of processors", a)
		}
		if bytes.Equal(a.Data(), c.Data()) {
			t.Errorf("%v does not depend on the seed", a)
		}
	}
}

// TestOutline makes the largest model without its weights.
func TestOutline(t *testing.T) {
	shape, err := Lookup("olmoe:1b-7b-q4_k_m")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Outline(context.Background(), shape)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x, ok := f.Tensor("blk.15.ffn_down_exps.weight")
	if want := []int{64, 2048, 1024}; !ok || !slices.Equal(x.Shape(), want) || x.Data()[x.Bytes()-1] != 0 {
		t.Errorf("%v, want zeros of shape %v", x, want)
	}
}

// TestChunks checks that data does not depend on how it is cut.
func TestChunks(t *testing.T) {
	for _, f := range packed.All() {
		if f.Random == nil {
			continue
		}
		typ, size := f.Name, f.BlockBytes
		fill := fillBlocks(f, 0.1, newStream(1, "x", 0), newStream(1, "x", 1))
		whole, parts := make([]byte, 256*size), make([]byte, 256*size)
		cut := 64 * size
		for _, err := range []error{fill(whole, 0), fill(parts[:cut], 0), fill(parts[cut:], int64(cut))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(whole, parts) {
			t.Errorf("%s: chunks differ from the whole", typ)
		}
	}
}

// decoders are written here from the description of the formats, for the types
// that models of the table use.
var decoders = map[gguf.Type]func(block []byte, out []float64){
	gguf.F32: func(b []byte, out []float64) {
		out[0] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	},
	gguf.F16: func(b []byte, out []float64) { out[0] = half(b) },
	gguf.Q8_0: func(b []byte, out []float64) {
		for i := range out {
			out[i] = half(b) * float64(int8(b[2+i]))
		}
	},
	gguf.Q5_0: func(b []byte, out []float64) {
		high := binary.LittleEndian.Uint32(b[2:])
		for i := range out {
			low := b[6+i%16] >> (4 * (i / 16)) & 15
			out[i] = half(b) * float64(int(low)+int(high>>i&1)<<4-16)
		}
	},
	gguf.Q5_K: func(b []byte, out []float64) {
		for i := range out {
			scale, minimum := sixBits(b[4:16], i/32)
			q := b[48+i/64*32+i%32]>>(4*(i/32%2))&15 | b[16+i%32]>>(i/32)&1<<4
			out[i] = half(b)*scale*float64(q) - half(b[2:])*minimum
		}
	},
	gguf.Q4_K: func(b []byte, out []float64) {
		for i := range out {
			scale, minimum := sixBits(b[4:16], i/32)
			q := b[16+i/64*32+i%32] >> (4 * (i / 32 % 2)) & 15
			out[i] = half(b)*scale*float64(q) - half(b[2:])*minimum
		}
	},
	gguf.Q6_K: func(b []byte, out []float64) {
		for i := range out {
			h, l := i/128, i%128
			low := b[64*h+l%64] >> (4 * (l / 64)) & 15
			high := b[128+32*h+l%32] >> (2 * (l / 32)) & 3
			out[i] = half(b[208:]) * float64(int8(b[192+i/16])) * float64(int(low|high<<4)-32)
		}
	},
}

func half(b []byte) float64 {
	return float64(float16.Frombits(binary.LittleEndian.Uint16(b)).Float32())
}

// sixBits unpacks scale and minimum number j of a Q4_K block.
func sixBits(s []byte, j int) (scale, minimum float64) {
	if j < 4 {
		return float64(s[j] & 63), float64(s[j+4] & 63)
	}
	return float64(s[j+4]&15 | s[j-4]>>6<<4), float64(s[j+4]>>4 | s[j]>>6<<4)
}

// TestSpread decodes a megabyte of every type and measures mean and spread.
func TestSpread(t *testing.T) {
	const std = 0.02
	for typ, decode := range decoders {
		fill, err := Fill(typ, std, 1, "x")
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, gguf.ChunkBytes(typ))
		if err := fill(data, 0); err != nil {
			t.Fatal(err)
		}
		info := typ.Info()
		block := make([]float64, info.Elements)
		var n, sum, squares float64
		for ; len(data) > 0; data = data[info.Bytes:] {
			decode(data[:info.Bytes], block)
			for _, x := range block {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Fatalf("%v: a value is %v", typ, x)
				}
				n, sum, squares = n+1, sum+x, squares+x*x
			}
		}
		mean, rms := sum/n, math.Sqrt(squares/n)
		if math.Abs(mean) > 0.02*std || math.Abs(rms/std-1) > 0.03 {
			t.Errorf("%v: mean %.5f, standard deviation %.5f; want 0 and %v", typ, mean, rms, std)
		}
	}
}

// TestSpreadOfEveryType decodes random blocks of all types by package packed.
func TestSpreadOfEveryType(t *testing.T) {
	const std, values = 0.02, 1 << 16
	for _, f := range packed.All() {
		if f.Random == nil {
			continue
		}
		fill, err := Fill(gguf.Type(f.GGUF), std, 1, "x")
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, values/f.BlockElems*f.BlockBytes)
		if err := fill(data, 0); err != nil {
			t.Fatal(err)
		}
		decoded, err := testkit.DecodeBlocks(f, data, false)
		if err != nil {
			t.Fatal(err)
		}
		var sum, squares float64
		for _, v := range decoded {
			sum, squares = sum+v.F, squares+v.F*v.F
		}
		n := float64(len(decoded))
		mean, rms := sum/n, math.Sqrt(squares/n)
		if !(math.Abs(mean) <= 0.03*std && math.Abs(rms/std-1) <= 0.04) { // and not if it is NaN
			t.Errorf("%s: mean %.5f, standard deviation %.5f; want 0 and %v", f.Name, mean, rms, std)
		}
	}
}

func TestFillRefuses(t *testing.T) {
	if _, err := Fill(gguf.I32, 1, 1, "x"); err == nil {
		t.Error("random I32 blocks were made")
	}
}

func TestLookup(t *testing.T) {
	for _, s := range Shapes() {
		got, err := Lookup(strings.ToUpper(s.Name))
		if err != nil || got.Name != s.Name || !IsShape(s.Name) {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if _, err := Lookup("llama9"); err == nil || !strings.Contains(err.Error(), Tiny) {
		t.Errorf("an unknown name gives %v, want the known ones", err)
	}
}

// TestCustom reads descriptions of models.
func TestCustom(t *testing.T) {
	const text = "olmoe:d=64,layers=2,heads=4,kv=2,head=16,ff=32,vocab=300,quant=q4_0,experts=4,used=2,tied=0,ctx=128"
	s, err := Lookup(text)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Memory(context.Background(), s, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if x, ok := f.Tensor("blk.1.ffn_down_exps.weight"); !ok || x.Type != gguf.Q4_0 || !slices.Equal(x.Shape(), []int{4, 64, 32}) {
		t.Errorf("%v, want Q4_0 of shape [4 64 32]", x)
	}
	if eos, err := f.Int("tokenizer.ggml.eos_token_id"); eos != 299 || err != nil || !f.Has("olmoe.expert_used_count") {
		t.Errorf("end token %d (%v), want 299", eos, err)
	}
	for _, wrong := range []string{
		"llama:d=64", "llama:d=x", "llama:d=64,y=3", "mamba:d=64,layers=1,heads=1,ff=64,vocab=300",
		"llama:d=64,layers=1,heads=3,kv=2,ff=64,vocab=300", "llama:d=64,layers=1,heads=1,ff=64,vocab=30",
		"llama:d=64,layers=1,heads=1,ff=64,vocab=300,quant=q9", "llama:d=64,layers=1,heads=1,ff=64,vocab=300,quant=i32",
		"llama:d=64,layers=1,heads=1,ff=64,vocab=300,pure=x", "qwen2:d=64,layers=1,heads=1,ff=64,vocab=300,experts=2,used=1", "qwen3moe:d=64,layers=1,heads=1,ff=64,vocab=300",
	} {
		if s, err := Lookup(wrong); err == nil || IsShape(wrong) {
			t.Errorf("%s: %+v, want an error", wrong, s)
		}
	}
}

// mixed are models in which every rule of a mixture decides something: rows that are no
// multiple of 256, keys and values of their own or shared, eight experts, 80 layers,
// queries, keys and values in one matrix.
var mixed = []string{
	"llama:d=256,layers=16,heads=4,kv=1,ff=256,vocab=300",
	"llama:d=256,layers=9,heads=2,ff=256,vocab=300,tied=0",
	"qwen2:d=96,layers=9,heads=3,kv=1,ff=256,vocab=300",
	"qwen3:d=320,layers=3,heads=4,kv=1,head=64,ff=288,vocab=300,tied=0",
	"llama:d=256,layers=80,heads=8,kv=1,ff=256,vocab=300",
	"olmoe:d=256,layers=10,heads=4,kv=1,ff=256,vocab=300,experts=8,used=2,tied=0",
	"olmoe:d=256,layers=10,heads=4,kv=4,ff=256,vocab=300,experts=6,used=2,tied=0",
	"gpt2:d=256,layers=17,heads=4,ff=1024,vocab=300",
}

// TestMixtures pins the types of all matrices. They were compared with files that
// llama.cpp's quantiser (2026-08) made from the F16 model of the same shape, tensor by
// tensor.
func TestMixtures(t *testing.T) {
	var b strings.Builder
	for _, model := range mixed {
		fmt.Fprintln(&b, model)
		for _, name := range append(MixtureNames(), "q2_k,pure=1", "q4_k_m,pure=1", "iq2_xs") {
			s, err := Lookup(model + ",quant=" + name)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "  %s (%d): %s\n", name, s.mixture.fileType, typesOf(s))
		}
	}
	golden(t, "mixtures.txt", b.String())
}

// typesOf lists the commonest type and then the matrices of other types, with the layers
// from which on they have them: "Q4_K, ffn_down 0 Q6_K 2 Q4_K".
func typesOf(s Shape) string {
	var names []string
	types := map[string][]gguf.Type{}
	for _, x := range s.Tensors() {
		if x.Type == gguf.F32 {
			continue
		}
		parts := strings.Split(x.Name, ".")
		name := parts[len(parts)-2]
		if types[name] == nil {
			names = append(names, name)
		}
		types[name] = append(types[name], x.Type)
	}
	line := s.mixture.base.String()
	for _, name := range names {
		if !slices.ContainsFunc(types[name], func(t gguf.Type) bool { return t != s.mixture.base }) {
			continue
		}
		line += ", " + name
		for i, t := range types[name] {
			if i == 0 || t != types[name][i-1] {
				line += fmt.Sprintf(" %d %s", i, t)
			}
		}
	}
	return line
}

func TestRopeFactors(t *testing.T) {
	shape, err := Lookup("llama3.2:1b-q6_k")
	if err != nil {
		t.Fatal(err)
	}
	f := shape.ropeScaling.factors(shape.HeadSize, shape.RopeBase)
	if len(f) != 32 || f[0] != 1 || f[31] != 32 || !slices.IsSorted(f) {
		t.Errorf("factors %v; want 32 of them, rising from 1 to 32", f)
	}
}

// TestVocabulary checks that every merge joins two tokens into a third and that
// special tokens are where the ids say.
func TestVocabulary(t *testing.T) {
	for _, s := range Shapes() {
		values := map[string]any{}
		for _, e := range s.tokenizer.entries(s.Vocabulary) {
			values[e.key] = e.value
		}
		tokens := values["tokenizer.ggml.tokens"].([]string)
		types := values["tokenizer.ggml.token_type"].([]int32)
		ids := map[string]int{}
		for i, token := range tokens {
			if _, again := ids[token]; again {
				t.Errorf("%s: token %q appears twice", s.Name, token)
			}
			ids[token] = i
		}
		for _, merge := range values["tokenizer.ggml.merges"].([]string) {
			left, right, ok := strings.Cut(merge, " ")
			a, okA := ids[left]
			b, okB := ids[right]
			if c, okC := ids[left+right]; !ok || !okA || !okB || !okC || c < a || c < b || types[c] != normalToken {
				t.Fatalf("%s: merge %q does not make a later token", s.Name, merge)
			}
		}
		for _, key := range []string{"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"} {
			if id := values[key].(uint32); types[id] != controlToken {
				t.Errorf("%s: %s is %d, %q of type %d, want a control token", s.Name, key, id, tokens[id], types[id])
			}
		}
		if n := len(tokens); n != s.Vocabulary || !slices.Contains(types, unusedToken) && s.Vocabulary > maxOrdinary {
			t.Errorf("%s: %d tokens, none unused; want %d", s.Name, n, s.Vocabulary)
		}
		if i := slices.Index(types, normalToken); tokens[i] != "!" {
			t.Errorf("%s: the first ordinary token is %q, want the bytes first", s.Name, tokens[i])
		}
	}
}

func BenchmarkTiny(b *testing.B) {
	shape, err := Lookup(Tiny)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f, err := Memory(context.Background(), shape, 1)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(f.Size())
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFill measures one goroutine.
func BenchmarkFill(b *testing.B) {
	for _, typ := range []gguf.Type{gguf.F16, gguf.F32, gguf.Q8_0, gguf.Q4_K, gguf.Q6_K} {
		b.Run(typ.String(), func(b *testing.B) {
			fill, err := Fill(typ, 0.02, 1, "x")
			if err != nil {
				b.Fatal(err)
			}
			chunk := make([]byte, gguf.ChunkBytes(typ))
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				if err := fill(chunk, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMemory makes a model of a gigabyte.
func BenchmarkMemory(b *testing.B) {
	shape, err := Lookup("llama3.2:1b-q6_k")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f, err := Memory(context.Background(), shape, 1)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(f.Size())
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
