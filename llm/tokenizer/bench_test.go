package tokenizer

import (
	"strings"
	"testing"

	"tgc/internal/oracle"
)

// benchmarkTexts are mixed prose and code, and the worst cases: one long word,
// and special tokens back to back.
var benchmarkTexts = map[string]string{
	"mixed": strings.Repeat("The quick brown fox can't jump over 12345 lazy dogs; naïve café, 中文字符 и кириллица.\n"+
		"\tfor i := 0; i < len(symbols); i++ { total += symbols[i].weight * 0.25 } // accumulate\n\n", 400),
	"one word": strings.Repeat("a", 1<<16),
	"special":  strings.Repeat("<|im_start|>", 1<<12),
}

func BenchmarkEncode(b *testing.B) {
	for _, name := range []string{"llama-bpe", "qwen2", "gpt-2", "falcon", "deepseek-coder", "llama-spm"} {
		tokenizer := oracleTokenizer(b, name)
		for kind, text := range benchmarkTexts {
			b.Run(name+"/"+kind, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					if _, err := tokenizer.Encode(text, true, true); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	text := benchmarkTexts["mixed"]
	for _, name := range []string{"llama-bpe", "gpt-2", "default", "deepseek-coder"} {
		pre, _ := findPreTokenizer(name)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				pre.split(text, func(string) {})
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	tokenizer := oracleTokenizer(b, "qwen2")
	ids, err := tokenizer.Encode(benchmarkTexts["mixed"], false, false)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(benchmarkTexts["mixed"])))
	for b.Loop() {
		tokenizer.Decode(ids, true)
	}
}

func BenchmarkNew(b *testing.B) {
	for _, name := range []string{"llama-bpe", "qwen2", "llama-spm"} {
		v := oracleVocabulary{name, oracle.Path(b, "tokenizer", name+".json")}.vocabulary(b)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := New(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
