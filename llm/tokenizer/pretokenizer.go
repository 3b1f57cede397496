package tokenizer

import (
	"slices"
	"strings"
)

// A preTokenizer cuts text into the words inside which byte pairs merge.
type preTokenizer struct {
	names     []string   // values of tokenizer.ggml.pre
	splitters []splitter // each cuts the pieces that the one before left
	wholeWord bool       // a word that is a token is taken at once, whatever its merges
	addBOS    bool       // default of tokenizer.ggml.add_bos_token
}

// preTokenizers is the table of all that are known. Names that differ only in
// what they are used for share a row.
//
// An unknown name is an error, as in llama.cpp: a wrong splitter degrades the
// output without a sign. No name at all means "default".
var preTokenizers = []preTokenizer{
	{
		names: []string{"default", ""},
		splitters: []splitter{
			isolate(punctuationRun("$+<=>^~|")), gpt2Words, isolate(numberRun), isolate(threeDigits),
		},
	},
	{
		names: []string{
			"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "gigachat", "a.x-4.0", "mellum",
			"modern-bert", "jina-v1-en", "jina-v2-code", "roberta-bpe", "exaone4", "mpt", "olmo", "jais",
			"trillion", "granite-docling",
		},
		splitters: []splitter{gpt2Words},
	},
	{
		names: []string{
			"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2",
		},
		splitters: []splitter{isolate(eachNumber), gpt2Words},
	},
	{
		names: []string{"falcon"},
		splitters: []splitter{
			isolate(punctuationRun("$+<=>^~|`")), gpt2Words, isolate(threeDigits),
		},
	},
	{
		names: []string{
			"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano",
		},
		splitters: []splitter{llama3Rules{digits: 3, letters: letter}.words},
		wholeWord: true,
		addBOS:    true,
	},
	{
		names:     []string{"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"},
		splitters: []splitter{llama3Rules{digits: 3, letters: letter}.words},
	},
	{
		names: []string{
			"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2",
			"bailingmoe", "bailingmoe2", "llada-moe",
		},
		splitters: []splitter{llama3Rules{digits: 1, letters: letter}.words},
	},
	{
		names:     []string{"qwen35"},
		splitters: []splitter{llama3Rules{digits: 1, letters: letter | mark}.words},
	},
	{
		names:     []string{"ufakzeka"},
		splitters: []splitter{llama3Rules{digits: 1, letters: letter, noContraction: true}.words},
	},
	{
		names:     []string{"seed-coder"},
		splitters: []splitter{llama3Rules{digits: 1, letters: letter, bareSymbols: true}.words},
	},
	{
		names:     []string{"minicpm5"},
		splitters: []splitter{isolate(upToThreeNumbers), llama3Rules{letters: letter}.words},
		wholeWord: true,
	},
	{
		names:     []string{"tekken"},
		splitters: []splitter{casedRules{digits: 1}.words},
		wholeWord: true,
		addBOS:    true,
	},
	{
		names:     []string{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"},
		splitters: []splitter{casedRules{digits: 3, contractions: true}.words},
	},
	{
		names: []string{"deepseek-coder"},
		splitters: []splitter{
			isolate(eachLineEnd), isolate(spacedRun(letter)), isolate(spacedRun(punct)),
			isolate(runIn(deepseekIdeograph)), isolate(eachNumber),
		},
	},
	{
		names: []string{"deepseek-llm"},
		splitters: []splitter{
			isolate(eachLineEnd), isolate(spacedRunIn(deepseekLetter)), isolate(spacedRunIn(deepseekPunctuation)),
			trailingSpaces, isolate(runIn(deepseekIdeograph)), isolate(numberRun),
		},
	},
	{
		names: []string{"deepseek-v3", "hunyuan-dense", "hy_v4", "joyai-llm"},
		splitters: []splitter{
			isolate(upToThreeNumbers), isolate(runIn(deepseek3CJK)), isolate(deepseek3Word),
		},
	},
	{
		names:     []string{"bloom", "poro-chat", "gpt3-finnish"},
		splitters: []splitter{isolate(bloomWord)},
	},
	{
		names:     []string{"viking"},
		splitters: []splitter{isolate(bloomWord), isolate(eachNumber)},
	},
}

// findPreTokenizer returns the row of a name.
func findPreTokenizer(name string) (*preTokenizer, bool) {
	for i := range preTokenizers {
		if slices.Contains(preTokenizers[i].names, name) {
			return &preTokenizers[i], true
		}
	}
	return nil, false
}

// split calls word for each word of text, in order.
func (p *preTokenizer) split(text string, word func(string)) {
	splitWith(p.splitters, text, word)
}

func splitWith(splitters []splitter, text string, word func(string)) {
	if len(splitters) == 0 {
		word(text)
		return
	}
	for len(text) > 0 {
		n := splitters[0](text)
		splitWith(splitters[1:], text[:n], word)
		text = text[n:]
	}
}

// bloomWord matches ` ?[^(\s|.,!?…。，、।۔،)]+`.
func bloomWord(s string) int {
	start := 0
	if s[0] == ' ' {
		start = 1
	}
	for i, r := range s[start:] {
		if classOf(r)&space != 0 || strings.ContainsRune("(|.,!?…。，、।۔،)", r) {
			if i == 0 {
				return 0
			}
			return start + i
		}
	}
	if start == len(s) {
		return 0
	}
	return len(s)
}
