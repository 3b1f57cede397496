package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// shape is a model: one layer and the head, which have the kernels of the whole.
type shape struct{ name, text string }

// shapes are those of published models, and then odd ones.
var shapes = []shape{
	{"llama3.2-1b", "llama:d=2048,heads=32,kv=8,head=64,ff=8192,vocab=128256"},
	{"llama3.2-3b", "llama:d=3072,heads=24,kv=8,head=128,ff=8192,vocab=128256"},
	{"llama3.1-8b", "llama:d=4096,heads=32,kv=8,head=128,ff=14336,vocab=128256,tied=0"},
	{"llama2-7b", "llama:d=4096,heads=32,ff=11008,vocab=32000,tied=0"},
	{"llama2-13b", "llama:d=5120,heads=40,ff=13824,vocab=32000,tied=0"},
	{"tinyllama-1.1b", "llama:d=2048,heads=32,kv=4,head=64,ff=5632,vocab=32000,tied=0"},
	{"mistral-7b", "llama:d=4096,heads=32,kv=8,head=128,ff=14336,vocab=32768,tied=0"},
	{"mistral-nemo-12b", "llama:d=5120,heads=32,kv=8,head=128,ff=14336,vocab=131072,tied=0"},
	{"smollm2-135m", "llama:d=576,heads=9,kv=3,head=64,ff=1536,vocab=49152"},
	{"smollm2-360m", "llama:d=960,heads=15,kv=5,head=64,ff=2560,vocab=49152"},
	{"smollm2-1.7b", "llama:d=2048,heads=32,head=64,ff=8192,vocab=49152"},
	{"smollm3-3b", "llama:d=2048,heads=16,kv=4,head=128,ff=11008,vocab=128256"},
	{"yi-6b", "llama:d=4096,heads=32,kv=4,head=128,ff=11008,vocab=64000,tied=0"},
	{"yi-9b", "llama:d=4096,heads=32,kv=4,head=128,ff=11008,vocab=64000,tied=0"},
	{"phi-3-mini", "llama:d=3072,heads=32,head=96,ff=8192,vocab=32064,tied=0"},
	{"phi-2", "llama:d=2560,heads=32,head=80,ff=10240,vocab=51200,tied=0"},
	{"granite-2b", "llama:d=2048,heads=32,kv=8,head=64,ff=8192,vocab=49155"},
	{"granite-8b", "llama:d=4096,heads=32,kv=8,head=128,ff=12800,vocab=49155"},
	{"openllama-3b", "llama:d=3200,heads=32,head=100,ff=8640,vocab=32000,tied=0"},
	{"minicpm-2b", "llama:d=2304,heads=36,head=64,ff=5760,vocab=122753"},
	{"stablelm-1.6b", "llama:d=2048,heads=32,head=64,ff=5632,vocab=100352,tied=0"},
	{"falcon3-1b", "llama:d=2048,heads=8,kv=4,head=256,ff=8192,vocab=131072,tied=0"},
	{"falcon3-3b", "llama:d=3072,heads=12,kv=4,head=256,ff=9216,vocab=131072,tied=0"},
	{"internlm2-1.8b", "llama:d=2048,heads=16,kv=8,head=128,ff=8192,vocab=92544,tied=0"},
	{"deepseek-coder-1.3b", "llama:d=2048,heads=16,head=128,ff=5504,vocab=32256,tied=0"},
	{"olmo-1b", "llama:d=2048,heads=16,head=128,ff=8192,vocab=50304"},
	{"h2o-danube-1.8b", "llama:d=2560,heads=32,kv=8,head=80,ff=6912,vocab=32000,tied=0"},
	{"qwen2.5-0.5b", "qwen2:d=896,heads=14,kv=2,head=64,ff=4864,vocab=151936"},
	{"qwen2.5-1.5b", "qwen2:d=1536,heads=12,kv=2,head=128,ff=8960,vocab=151936"},
	{"qwen2.5-3b", "qwen2:d=2048,heads=16,kv=2,head=128,ff=11008,vocab=151936"},
	{"qwen2.5-7b", "qwen2:d=3584,heads=28,kv=4,head=128,ff=18944,vocab=152064,tied=0"},
	{"qwen2.5-14b", "qwen2:d=5120,heads=40,kv=8,head=128,ff=13824,vocab=152064,tied=0"},
	{"qwen3-0.6b", "qwen3:d=1024,heads=16,kv=8,head=128,ff=3072,vocab=151936"},
	{"qwen3-1.7b", "qwen3:d=2048,heads=16,kv=8,head=128,ff=6144,vocab=151936"},
	{"qwen3-4b", "qwen3:d=2560,heads=32,kv=8,head=128,ff=9728,vocab=151936"},
	{"qwen3-8b", "qwen3:d=4096,heads=32,kv=8,head=128,ff=12288,vocab=151936,tied=0"},
	{"qwen3-14b", "qwen3:d=5120,heads=40,kv=8,head=128,ff=17408,vocab=151936,tied=0"},
	{"olmoe-1b-7b", "olmoe:d=2048,heads=16,head=128,ff=1024,vocab=50304,experts=64,used=8,tied=0"},
	{"olmoe-small", "olmoe:d=1024,heads=16,head=64,ff=768,vocab=50304,experts=32,used=4,tied=0"},
	{"gpt2-small", "gpt2:d=768,heads=12,ff=3072,vocab=50257,ctx=1024"},
	{"gpt2-medium", "gpt2:d=1024,heads=16,ff=4096,vocab=50257,ctx=1024"},
	{"gpt2-large", "gpt2:d=1280,heads=20,ff=5120,vocab=50257,ctx=1024"},
	{"gpt2-xl", "gpt2:d=1600,heads=25,ff=6400,vocab=50257,ctx=1024"},
	{"cerebras-256m", "gpt2:d=1088,heads=17,ff=4352,vocab=50257,ctx=2048"},

	{"odd-35-blocks", "llama:d=1120,heads=35,kv=7,head=32,ff=2240,vocab=32003"},
	{"odd-35-superblocks", "llama:d=1280,heads=20,kv=4,head=64,ff=8960,vocab=32003"},
	{"odd-6-superblocks", "llama:d=1536,heads=24,kv=6,head=64,ff=2304,vocab=65537"},
	{"odd-9-superblocks", "qwen2:d=2304,heads=18,kv=9,head=128,ff=4608,vocab=65537"},
	{"odd-14-heads", "qwen3:d=1792,heads=14,kv=7,head=128,ff=6912,vocab=100003"},
	{"odd-11-superblocks", "llama:d=2816,heads=22,kv=11,head=128,ff=7424,vocab=65537,tied=0"},
	{"odd-13-heads", "llama:d=3328,heads=13,kv=1,head=256,ff=8960,vocab=40009"},
	{"odd-1-kv", "llama:d=2048,heads=8,kv=1,head=256,ff=16384,vocab=256000"},
	{"odd-2-rows", "llama:d=2048,heads=1,kv=1,head=2,ff=8192,vocab=32003"},
	{"odd-narrow", "llama:d=160,heads=5,kv=1,head=32,ff=13696,vocab=151643"},
	{"odd-wide", "llama:d=12288,heads=3,kv=1,head=128,ff=352,vocab=4099"},
	{"odd-23-blocks", "qwen2:d=736,heads=23,kv=23,head=32,ff=2944,vocab=50021"},
	{"odd-heads-of-72", "llama:d=1152,heads=16,kv=4,head=72,ff=4304,vocab=256001"},
	{"odd-2880", "llama:d=2880,heads=64,kv=8,head=64,ff=2880,vocab=201088,tied=0"},
	{"odd-experts", "olmoe:d=1536,heads=12,head=128,ff=352,vocab=50021,experts=60,used=6,tied=0"},
	{"odd-gpt2", "gpt2:d=1312,heads=41,ff=5248,vocab=50261,ctx=512"},
}

var (
	types   = []string{"Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "IQ3_S", "F16", "BF16"}
	modes   = []string{"exact", "i16", "int8"}
	batches = []int{1, 2, 4, 8}
	lengths = []int{32, 77, 128, 512} // of prompts
	targets = []string{"ptx:sm_90", "ptx:sm_87"}
)

// subject is one compilation.
type subject struct {
	shape
	quant, mode, target string
	batch               int
	tokens              int // of a prompt; 0: a decode step
}

// model is the SHAPE that the command line takes. Of a prompt the last layer makes one token.
func (s subject) model() string {
	arch, rest, _ := strings.Cut(s.text, ":")
	layers := 1
	if s.tokens > 0 {
		layers = 2
	}
	return fmt.Sprintf("%s:layers=%d,%s,quant=%s,pure=1", arch, layers, rest, s.quant)
}

// step names what is compiled: b2 is a decode step of two sequences, p128 a prompt of 128 tokens.
func (s subject) step() string {
	if s.tokens > 0 {
		return fmt.Sprintf("p%d", s.tokens)
	}
	return fmt.Sprintf("b%d", s.batch)
}

// String names the subject in findings.
func (s subject) String() string {
	return fmt.Sprintf("%s/%s/%s/%s/%s", s.name, s.quant, s.mode, s.step(), s.target)
}

// command compiles the subject.
func (s subject) command() string {
	step := fmt.Sprintf("--batch %d", s.batch)
	if s.tokens > 0 {
		step = fmt.Sprintf("--step prefill --tokens %d", s.tokens)
	}
	return fmt.Sprintf("tgc compile '%s' --mode %s %s --target %s --ctx %d -o DIR", s.model(), s.mode, step, s.target, cacheRows)
}

// subjects lists the decode steps of the whole product.
func subjects() []subject {
	return product(batches, func(batch int) subject { return subject{batch: batch} })
}

// prompts lists its prompts.
func prompts() []subject {
	return product(lengths, func(tokens int) subject { return subject{batch: 1, tokens: tokens} })
}

// product lists steps of all shapes: those of one model stand together.
func product(numbers []int, step func(n int) subject) []subject {
	var list []subject
	for _, s := range shapes {
		for _, quant := range types {
			for _, target := range targets {
				for _, mode := range modes {
					for _, n := range numbers {
						one := step(n)
						one.shape, one.quant, one.mode, one.target = s, quant, mode, target
						list = append(list, one)
					}
				}
			}
		}
	}
	return list
}

// sample picks n subjects, of each shape as many, in the order of the list.
func sample(list []subject, n int, seed uint64) []subject {
	random := rand.New(rand.NewPCG(seed, 1))
	order := make([]int, len(list)) // a subject's turn: the first of all shapes come first
	turns := make(map[shape]int)
	for _, i := range random.Perm(len(list)) {
		order[i] = turns[list[i].shape]*len(shapes) + slices.Index(shapes, list[i].shape)
		turns[list[i].shape]++
	}
	last := slices.Sorted(slices.Values(order))[min(n, len(list))-1]
	var out []subject
	for i, s := range list {
		if order[i] <= last {
			out = append(out, s)
		}
	}
	return out
}
