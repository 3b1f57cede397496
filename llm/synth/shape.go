package synth

import (
	"fmt"
	"strings"
)

// Shape describes a model: everything but its numbers.
type Shape struct {
	Name         string // as the command line spells it, such as "llama3.2:1b-q6_k"
	Title        string // general.name
	Size         string // general.size_label
	Architecture string // general.architecture

	Width       int // of the residual stream
	Layers      int
	Heads       int // of queries
	KVHeads     int // of keys and values
	HeadSize    int
	FeedForward int  // width; per expert
	Experts     int  // 0 for a dense model
	ExpertsUsed int  // per token
	Vocabulary  int  // tokens
	Context     int  // tokens
	Tied        bool // the output matrix is the token embedding

	Window   int     // cache rows that some layers see; 0: all see all
	Original int     // context of the first training, where positions are scaled; 0: the family's
	RopeBase float64 // 0 for learned positions
	Epsilon  float64 // of the norms

	ropeScaling *ropeScaling
	mixture     *mixture
	tokenizer   *tokenizer
}

// original is the context of the first training.
func (s *Shape) original() int {
	if s.Original != 0 {
		return s.Original
	}
	return 4096
}

// ropeScaling stretches the slow rotary frequencies: unchanged below a
// wavelength of context/high, divided by factor above context/low, and blended
// between.
type ropeScaling struct{ factor, low, high, context float64 }

// shapes is the table of models, with hyperparameters from the published files.
var shapes = []Shape{
	{
		Name: "llama3.2:1b-q6_k", Title: "Llama 3.2 1B Instruct", Size: "1B", Architecture: "llama",
		Width: 2048, Layers: 16, Heads: 32, KVHeads: 8, HeadSize: 64, FeedForward: 8192,
		Vocabulary: 128256, Context: 131072, Tied: true, RopeBase: 500000, Epsilon: 1e-5,
		ropeScaling: &ropeScaling{factor: 32, low: 1, high: 4, context: 8192},
		mixture:     published("q6_k"), tokenizer: &llama3Tokenizer,
	},
	{
		Name: "llama3.2:3b-q6_k", Title: "Llama 3.2 3B Instruct", Size: "3B", Architecture: "llama",
		Width: 3072, Layers: 28, Heads: 24, KVHeads: 8, HeadSize: 128, FeedForward: 8192,
		Vocabulary: 128256, Context: 131072, Tied: true, RopeBase: 500000, Epsilon: 1e-5,
		ropeScaling: &ropeScaling{factor: 32, low: 1, high: 4, context: 8192},
		mixture:     published("q6_k"), tokenizer: &llama3Tokenizer,
	},
	{
		Name: "qwen3:0.6b-q8_0", Title: "Qwen3 0.6B", Size: "0.6B", Architecture: "qwen3",
		Width: 1024, Layers: 28, Heads: 16, KVHeads: 8, HeadSize: 128, FeedForward: 3072,
		Vocabulary: 151936, Context: 40960, Tied: true, RopeBase: 1e6, Epsilon: 1e-6,
		mixture: published("q8_0"), tokenizer: &qwenTokenizer,
	},
	{
		Name: "qwen3:1.7b-q4_k_m", Title: "Qwen3 1.7B", Size: "1.7B", Architecture: "qwen3",
		Width: 2048, Layers: 28, Heads: 16, KVHeads: 8, HeadSize: 128, FeedForward: 6144,
		Vocabulary: 151936, Context: 40960, Tied: true, RopeBase: 1e6, Epsilon: 1e-6,
		mixture: published("q4_k_m"), tokenizer: &qwenTokenizer,
	},
	{
		Name: "olmoe:1b-7b-q4_k_m", Title: "OLMoE 1B 7B 0924 Instruct", Size: "64x1B", Architecture: "olmoe",
		Width: 2048, Layers: 16, Heads: 16, KVHeads: 16, HeadSize: 128, FeedForward: 1024, Experts: 64, ExpertsUsed: 8,
		Vocabulary: 50304, Context: 4096, RopeBase: 10000, Epsilon: 1e-5,
		mixture: published("q4_k_m"), tokenizer: &olmoTokenizer,
	},
	{
		Name: "llama3.1:8b-q4_k_m", Title: "Llama 3.1 8B Instruct", Size: "8B", Architecture: "llama",
		Width: 4096, Layers: 32, Heads: 32, KVHeads: 8, HeadSize: 128, FeedForward: 14336,
		Vocabulary: 128256, Context: 131072, RopeBase: 500000, Epsilon: 1e-5,
		ropeScaling: &ropeScaling{factor: 8, low: 1, high: 4, context: 8192},
		mixture:     published("q4_k_m"), tokenizer: &llama3Tokenizer,
	},
	{
		Name: "qwen2.5:0.5b-q4_k_m", Title: "Qwen2.5 0.5B Instruct", Size: "0.5B", Architecture: "qwen2",
		Width: 896, Layers: 24, Heads: 14, KVHeads: 2, HeadSize: 64, FeedForward: 4864,
		Vocabulary: 151936, Context: 32768, Tied: true, RopeBase: 1e6, Epsilon: 1e-6,
		mixture: published("q4_k_m"), tokenizer: &qwenTokenizer,
	},
	{
		Name: "qwen2.5:1.5b-q5_k_m", Title: "Qwen2.5 1.5B Instruct", Size: "1.5B", Architecture: "qwen2",
		Width: 1536, Layers: 28, Heads: 12, KVHeads: 2, HeadSize: 128, FeedForward: 8960,
		Vocabulary: 151936, Context: 32768, Tied: true, RopeBase: 1e6, Epsilon: 1e-6,
		mixture: published("q5_k_m"), tokenizer: &qwenTokenizer,
	},
	{
		Name: "smollm2:135m-q8_0", Title: "SmolLM2 135M Instruct", Size: "135M", Architecture: "llama",
		Width: 576, Layers: 30, Heads: 9, KVHeads: 3, HeadSize: 64, FeedForward: 1536,
		Vocabulary: 49152, Context: 8192, Tied: true, RopeBase: 100000, Epsilon: 1e-5,
		mixture: published("q8_0"), tokenizer: &smolTokenizer,
	},
	{
		Name: "gpt2:124m-f16", Title: "GPT-2", Size: "124M", Architecture: "gpt2",
		Width: 768, Layers: 12, Heads: 12, KVHeads: 12, HeadSize: 64, FeedForward: 3072,
		Vocabulary: 50257, Context: 1024, Tied: true, Epsilon: 1e-5,
		mixture: published("f16"), tokenizer: &gpt2Tokenizer,
	},
	{
		Name: Tiny, Title: "Tiny", Size: "3M", Architecture: "llama",
		Width: 256, Layers: 4, Heads: 8, KVHeads: 4, HeadSize: 32, FeedForward: 768,
		Vocabulary: 2048, Context: 2048, Tied: true, RopeBase: 10000, Epsilon: 1e-5,
		mixture: &mixTiny, tokenizer: &tinyTokenizer,
	},
	{
		// No size is a multiple of a block, a vector or a warp: all matrices are F16.
		Name: "odd", Title: "Odd", Size: "36K", Architecture: "llama",
		Width: 30, Layers: 2, Heads: 3, KVHeads: 1, HeadSize: 10, FeedForward: 70,
		Vocabulary: 300, Context: 512, Tied: true, RopeBase: 10000, Epsilon: 1e-5,
		mixture: published("q8_0"), tokenizer: &oddTokenizer,
	},
}

// Tiny names the small model that is always at hand.
const Tiny = "tiny"

// Shapes returns all models of the table.
func Shapes() []Shape { return append([]Shape(nil), shapes...) }

// Lookup finds a model by its name, or reads a description of one.
func Lookup(name string) (Shape, error) {
	var names []string
	for _, s := range shapes {
		if s.Name == strings.ToLower(name) {
			return s, nil
		}
		names = append(names, s.Name)
	}
	if IsDescription(name) {
		return parseCustom(strings.ToLower(name))
	}
	return Shape{}, fmt.Errorf("synth: no model shape %q; want one of %s, or %s", name, strings.Join(names, ", "), customForm)
}

// IsDescription reports what reads like a description of a model, not like a file.
func IsDescription(name string) bool {
	return strings.Contains(name, "=") && !strings.Contains(name, "/")
}

// IsShape reports whether a name is that of a model of the table, and so not
// that of a file.
func IsShape(name string) bool {
	_, err := Lookup(name)
	return err == nil
}
