package llm_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"tgc/llm"
	"tgc/llm/synth"
)

// familyModels are small models of the architectures without recorded answers: sizes that
// are no multiples, windows shorter than the text, several layers of each kind, positions
// past the length of the first training.
var familyModels = []string{
	"mistral:d=96,layers=2,heads=3,kv=1,ff=64,vocab=301,experts=3,used=2,quant=q4_0",
	"mistral3:d=96,layers=2,heads=6,kv=3,head=24,ff=160,vocab=301,orig=7,quant=q8_0",
	"qwen3moe:d=64,layers=2,heads=3,kv=1,head=32,ff=96,vocab=301,experts=5,used=2,tied=0,quant=q4_0",
	"gemma2:d=96,layers=3,heads=4,kv=2,head=48,ff=160,vocab=301,window=5,quant=q8_0",
	"gemma3:d=96,layers=7,heads=5,kv=1,head=32,ff=160,vocab=301,window=6,quant=q4_0",
	"phi3:d=96,layers=2,heads=3,head=32,ff=70,vocab=301,tied=0,orig=16,window=5,quant=q5_0",
	"phi3:d=64,layers=2,heads=2,ff=64,vocab=301,tied=0,orig=64,quant=f16",
	"granite:d=96,layers=2,heads=6,kv=2,head=16,ff=64,vocab=301,quant=q8_0",
	"smollm3:d=64,layers=5,heads=4,kv=2,ff=96,vocab=301,quant=q4_1",
	"olmo2:d=96,layers=5,heads=3,ff=64,vocab=301,tied=0,window=4,quant=q8_0",
	"gpt-oss:d=96,layers=3,heads=6,kv=2,head=16,ff=64,vocab=301,experts=5,used=3,tied=0,window=5,orig=8,quant=mxfp4_moe",
}

// The compiled models equal the independent float64 forward pass, fed whole and in parts.
func TestFamiliesAgainstReference(t *testing.T) {
	dev := openDevice(t, "cpu")
	for i, description := range familyModels {
		name, _, _ := strings.Cut(description, ":")
		t.Run(name, func(t *testing.T) {
			shape, err := synth.Lookup(description)
			if err != nil {
				t.Fatal(err)
			}
			f, err := synth.Memory(t.Context(), shape, uint64(i))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, split := range []int{0, 5} {
				compareWithReference(t, dev, f, generation{prompt: 11, split: split, tokens: 8, nmse: maxNMSE})
			}
		})
	}
}

// A step reads no more of a cache than the window, however far the text has come.
func TestWindowBoundsReads(t *testing.T) {
	m := openOutline(t, "phi3:d=96,layers=2,heads=3,head=32,ff=64,vocab=301,window=64,quant=q8_0")
	read := func(depth int) int64 {
		v := llm.Variant{Batch: 1, Tokens: 1, Context: 4096}
		return describeStep(t, m, v, depth, "llvm:x86-64-v4").Bytes
	}
	if near, far := read(100), read(4000); near != far {
		t.Errorf("%d bytes at depth 100, %d at 4000, want the same", near, far)
	}
}

// randomFamily describes a small model of an architecture, of odd sizes.
func randomFamily(r *rand.Rand, arch string) string {
	kv, head := pickOf(r, 1, 2, 3), pickOf(r, 8, 10, 16, 24, 32, 48)
	heads := kv * pickOf(r, 1, 2, 3, 5)
	width, quant := pickOf(r, 32, 64, 70, 96, 160), pickOf(r, "q4_0", "q8_0", "q5_1", "f16", "iq4_nl", "mxfp4_moe")
	switch arch {
	case "qwen2", "olmoe": // whose heads are the width over their number
		width = heads * head
	}
	text := fmt.Sprintf("%s:d=%d,layers=%d,heads=%d,kv=%d,head=%d,ff=%d,vocab=%d,quant=%s,tied=%d", arch, width, pickOf(r, 1, 2, 3, 4, 6), heads, kv, head,
		pickOf(r, 32, 64, 70, 128), pickOf(r, 297, 300, 512), quant, r.IntN(2))
	switch arch {
	case "qwen3moe", "olmoe", "gpt-oss":
		text += fmt.Sprintf(",experts=%d,used=%d", pickOf(r, 3, 4, 7), pickOf(r, 1, 2, 3))
	}
	if arch != "llama" && arch != "qwen2" && arch != "qwen3" && arch != "qwen3moe" && arch != "olmoe" && arch != "granite" && arch != "smollm3" && arch != "mistral3" {
		text += fmt.Sprintf(",window=%d", pickOf(r, 1, 2, 5, 9, 30))
	}
	return text + fmt.Sprintf(",orig=%d", pickOf(r, 3, 16, 64))
}

// Models of the architectures without recorded answers, of odd sizes, equal the reference.
// TGC_MODEL_SEEDS asks for more of them.
func TestRandomFamiliesAgainstReference(t *testing.T) {
	dev := openDevice(t, "cpu")
	list := []string{"qwen3moe", "gemma3", "phi3", "mistral", "granite", "smollm3", "gpt-oss", "gemma2", "mistral3", "olmo2"}
	seeds := 7
	if n, err := strconv.Atoi(os.Getenv("TGC_MODEL_SEEDS")); err == nil {
		seeds = n
	}
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 2))
		description := randomFamily(r, list[seed%uint64(len(list))])
		t.Run(fmt.Sprintf("%d %s", seed, description), func(t *testing.T) {
			shape, err := synth.Lookup(description)
			if err != nil {
				t.Fatal(err)
			}
			f, err := synth.Memory(t.Context(), shape, seed)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			compareWithReference(t, dev, f, generation{prompt: 11, split: int(seed%3) * 4, tokens: 8, nmse: maxNMSE})
		})
	}
}
