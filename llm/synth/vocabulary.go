package synth

import (
	_ "embed"
	"fmt"
	"strings"

	llmtokenizer "tgc/llm/tokenizer"
)

// tokenizer is what a family's vocabulary has besides ordinary tokens. The
// ordinary ones are stand-ins: a byte-level BPE trained on a list of common
// English words, filled up with unused tokens.
type tokenizer struct {
	pre      string         // how text is split before merging
	special  []specialToken // by id: before all ordinary tokens if from 0 on, else after them
	bos, eos uint32
	addBOS   bool
	template string // of chats; may be empty
}

// specialToken is a control token at the id that the family gives it.
type specialToken struct {
	id   int
	text string
}

// Token types of tokenizer.ggml.token_type.
const (
	normalToken  int32 = 1
	controlToken int32 = 3
	unusedToken  int32 = 5
)

var (
	llama3Tokenizer = tokenizer{pre: "llama-bpe", special: llama3Special(128000), bos: 128000, eos: 128009, addBOS: true, template: llama3Template}
	tinyTokenizer   = tokenizer{pre: "llama-bpe", special: llama3Special(2038), bos: 2038, eos: 2047, addBOS: true, template: llama3Template}
	oddTokenizer    = tokenizer{pre: "llama-bpe", special: llama3Special(290), bos: 290, eos: 299, addBOS: true, template: llama3Template}
	qwenTokenizer   = tokenizer{
		pre:     "qwen2",
		special: []specialToken{{151643, "<|endoftext|>"}, {151644, "<|im_start|>"}, {151645, "<|im_end|>"}},
		bos:     151643, eos: 151645, template: chatMLTemplate,
	}
	smolTokenizer = tokenizer{
		pre:     "smollm",
		special: []specialToken{{0, "<|endoftext|>"}, {1, "<|im_start|>"}, {2, "<|im_end|>"}},
		bos:     1, eos: 2, template: chatMLTemplate,
	}
	olmoTokenizer = tokenizer{
		pre:     "olmo",
		special: []specialToken{{50279, "<|endoftext|>"}},
		bos:     50279, eos: 50279, template: olmoTemplate,
	}
	gpt2Tokenizer = tokenizer{
		pre:     "gpt-2",
		special: []specialToken{{50256, "<|endoftext|>"}},
		bos:     50256, eos: 50256,
	}
)

// llama3Special returns the control tokens of Llama 3, from an id on.
func llama3Special(first int) []specialToken {
	return []specialToken{
		{first, "<|begin_of_text|>"}, {first + 1, "<|end_of_text|>"},
		{first + 6, "<|start_header_id|>"}, {first + 7, "<|end_header_id|>"},
		{first + 8, "<|eom_id|>"}, {first + 9, "<|eot_id|>"},
	}
}

// Chat templates: each family's markup at its plainest.
const (
	llama3Template = `{{ bos_token }}{% for message in messages %}` +
		`{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] + '<|eot_id|>' }}{% endfor %}` +
		`{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}`
	chatMLTemplate = `{% for message in messages %}` +
		`{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}` +
		`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`
	olmoTemplate = `{{ bos_token }}{% for message in messages %}` +
		`{{ '<|' + message['role'] + '|>\n' + message['content'] }}{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{{ '\n' }}{% endfor %}` +
		`{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}`
)

// entries returns the tokenizer.* metadata of a vocabulary of size tokens.
func (t *tokenizer) entries(size int) []entry {
	first, end := 0, t.special[0].id // of ordinary tokens
	if end == 0 {
		first, end = len(t.special), size
	}
	ordinary, merges := llmtokenizer.TrainBPE(weighted(strings.Fields(wordList)), min(end-first, maxOrdinary))
	tokens, types := make([]string, size), make([]int32, size)
	for i := range tokens {
		tokens[i], types[i] = fmt.Sprintf("[PAD%d]", i), unusedToken
	}
	for i, token := range ordinary {
		tokens[first+i], types[first+i] = token, normalToken
	}
	for _, s := range t.special {
		tokens[s.id], types[s.id] = s.text, controlToken
	}
	list := []entry{
		{"tokenizer.ggml.model", "gpt2"},
		{"tokenizer.ggml.pre", t.pre},
		{"tokenizer.ggml.tokens", tokens},
		{"tokenizer.ggml.token_type", types},
		{"tokenizer.ggml.merges", merges},
		{"tokenizer.ggml.bos_token_id", t.bos},
		{"tokenizer.ggml.eos_token_id", t.eos},
		{"tokenizer.ggml.add_bos_token", t.addBOS},
	}
	if t.template != "" {
		list = append(list, entry{"tokenizer.chat_template", t.template})
	}
	return list
}

// maxOrdinary bounds the ordinary tokens: the 256 bytes and some merges.
const maxOrdinary = 2048

// wordList is common English words, the more common ones first.
//
//go:embed words.txt
var wordList string

// weighted lists the forms of words in texts, with made-up frequencies.
func weighted(words []string) (list []llmtokenizer.WeightedWord) {
	for i, word := range words {
		// Frequency falls with the place in the list. Most words of a text
		// follow a space; some start a sentence.
		weight := 1 + (1<<20)/(i+8)
		list = append(list,
			llmtokenizer.WeightedWord{Text: " " + word, Weight: 16 * weight},
			llmtokenizer.WeightedWord{Text: word, Weight: 2 * weight},
			llmtokenizer.WeightedWord{Text: strings.ToUpper(word[:1]) + word[1:], Weight: weight})
	}
	return list
}
