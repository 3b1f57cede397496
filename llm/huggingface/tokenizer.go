package huggingface

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"tgc/gguf"
	tok "tgc/llm/tokenizer"
)

const tokenizerFile = "tokenizer.json"

// tokenizerJSON are the parts of tokenizer.json that are read.
type tokenizerJSON struct {
	Model struct {
		Type         string            `json:"type"`
		Vocabulary   map[string]int32  `json:"vocab"`
		Merges       []json.RawMessage `json:"merges"`
		ByteFallback bool              `json:"byte_fallback"`
		IgnoreMerges bool              `json:"ignore_merges"`
		Unknown      *string           `json:"unk_token"`
	} `json:"model"`
	Added        []addedToken  `json:"added_tokens"`
	PreTokenizer *preTokenizer `json:"pre_tokenizer"`
	Normalizer   *normalizer   `json:"normalizer"`
	Processor    struct {
		Single     []map[string]json.RawMessage `json:"single"`
		Processors []struct {
			Single []map[string]json.RawMessage `json:"single"`
		} `json:"processors"`
	} `json:"post_processor"`
}

type addedToken struct {
	ID      int32  `json:"id"`
	Content string `json:"content"`
	Special bool   `json:"special"`
}

type preTokenizer struct {
	Type    string          `json:"type"`
	List    []*preTokenizer `json:"pretokenizers"`
	Pattern struct {
		Regex  string `json:"Regex"`
		String string `json:"String"`
	} `json:"pattern"`
	UseRegex   *bool  `json:"use_regex"`
	Individual bool   `json:"individual_digits"`
	Scheme     string `json:"prepend_scheme"` // of Metaspace
	AddPrefix  *bool  `json:"add_prefix_space"`
}

type normalizer struct {
	Type string        `json:"type"`
	List []*normalizer `json:"normalizers"`
}

// tokenizerConfig are the parts of tokenizer_config.json that are read.
type tokenizerConfig struct {
	AddBOS   *bool           `json:"add_bos_token"`
	AddEOS   *bool           `json:"add_eos_token"`
	BOS      json.RawMessage `json:"bos_token"`
	EOS      json.RawMessage `json:"eos_token"`
	PAD      json.RawMessage `json:"pad_token"`
	Template json.RawMessage `json:"chat_template"`

	Decoder map[string]addedToken `json:"added_tokens_decoder"` // by id; read with tokenizer.model
}

// tokenizer returns the tokenizer.* keys; none where the folder has no vocabulary.
func (d *folder) tokenizer() ([]entry, error) {
	settings, err := d.tokenizerSettings()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(d.path, tokenizerFile)
	text, err := readLimited(path, maxTokenizerBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return d.sentencePiece(settings)
	}
	if err != nil {
		return nil, err
	}
	list, err := translateTokenizer(text, settings, d.config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// sentencePiece is tokenizer for a folder with tokenizer.model.
func (d *folder) sentencePiece(settings tokenizerConfig) ([]entry, error) {
	path := filepath.Join(d.path, sentencePieceFile)
	data, err := readLimited(path, maxTokenizerBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var added map[string]int32
	if err := d.readJSON("added_tokens.json", &added); err != nil {
		return nil, err
	}
	list, err := translateSentencePiece(data, added, settings, d.config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// tokenizerSettings reads tokenizer_config.json and the template of a file of its own.
func (d *folder) tokenizerSettings() (settings tokenizerConfig, err error) {
	if err := d.readJSON("tokenizer_config.json", &settings); err != nil {
		return settings, err
	}
	template, err := readLimited(filepath.Join(d.path, "chat_template.jinja"), maxConfigBytes)
	if err == nil && settings.Template == nil {
		settings.Template, _ = json.Marshal(string(template))
	}
	return settings, nil
}

// readJSON reads a file that a folder may have.
func (d *folder) readJSON(name string, into any) error {
	path := filepath.Join(d.path, name)
	text, err := readLimited(path, maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// translateTokenizer makes the keys of a vocabulary of byte pairs.
func translateTokenizer(text []byte, settings tokenizerConfig, c *config) ([]entry, error) {
	var t tokenizerJSON
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, err
	}
	if t.Model.Type != "BPE" {
		return nil, fmt.Errorf("model is %s, want BPE", gguf.Quote(t.Model.Type))
	}
	merges, err := t.merges()
	if err != nil {
		return nil, err
	}
	tokens, types, err := t.tokens(c.vocabulary)
	if err != nil {
		return nil, err
	}
	list := []entry{{"tokenizer.ggml.tokens", tokens}, {"tokenizer.ggml.token_type", types}}
	if t.Model.ByteFallback {
		list = append(list, entry{"tokenizer.ggml.model", "llama"}, entry{"tokenizer.ggml.scores", scores(tokens, merges)},
			entry{"tokenizer.ggml.add_space_prefix", t.Normalizer.prepends() || t.PreTokenizer.prepends()})
	} else {
		pre, err := t.pre()
		if err != nil {
			return nil, err
		}
		list = append(list, entry{"tokenizer.ggml.model", "gpt2"}, entry{"tokenizer.ggml.pre", pre}, entry{"tokenizer.ggml.merges", merges})
	}
	return append(list, t.special(settings, tokens, c)...), nil
}

// merges reads pairs, which are texts with a space or lists of two.
func (t *tokenizerJSON) merges() ([]string, error) {
	out := make([]string, len(t.Model.Merges))
	for i, m := range t.Model.Merges {
		var pair []string
		if json.Unmarshal(m, &out[i]) == nil {
			pair = strings.SplitN(out[i], " ", 2)
		} else if json.Unmarshal(m, &pair) != nil {
			pair = nil
		}
		if len(pair) != 2 || strings.Contains(pair[0], " ") {
			return nil, fmt.Errorf("merge %d is %.80s, want two tokens", i, m)
		}
		out[i] = pair[0] + " " + pair[1]
	}
	return out, nil
}

// tokens lists the texts and types by id, unused ones up to the size of the vocabulary.
func (t *tokenizerJSON) tokens(size int) (tokens []string, types []int32, err error) {
	tokens, types = make([]string, size), make([]int32, size)
	put := func(id int32, text string, kind int32) error {
		if id < 0 || int(id) >= size {
			return fmt.Errorf("token %s has id %d, outside vocab_size %d", gguf.Quote(text), id, size)
		}
		tokens[id], types[id] = text, kind
		return nil
	}
	for text, id := range t.Model.Vocabulary {
		kind := tok.TypeNormal
		if t.Model.ByteFallback && len(text) == 6 && strings.HasPrefix(text, "<0x") && strings.HasSuffix(text, ">") {
			kind = tok.TypeByte
		}
		if err := put(id, text, kind); err != nil {
			return nil, nil, err
		}
	}
	for _, added := range t.Added {
		kind := tok.TypeUserDefined
		if added.Special {
			kind = tok.TypeControl
		}
		if u := t.Model.Unknown; u != nil && *u == added.Content && t.Model.ByteFallback {
			kind = tok.TypeUnknown
		}
		if err := put(added.ID, added.Content, kind); err != nil {
			return nil, nil, err
		}
	}
	for id, kind := range types {
		if kind == 0 {
			tokens[id], types[id] = fmt.Sprintf("[PAD%d]", id), tok.TypeUnused
		}
	}
	return tokens, types, nil
}

// scores ranks the tokens of a SentencePiece vocabulary by the merges that make them: the
// first is the best.
func scores(tokens, merges []string) []float32 {
	rank := make(map[string]int, len(merges))
	for i, m := range merges {
		text := strings.Replace(m, " ", "", 1)
		if _, ok := rank[text]; !ok {
			rank[text] = i + 1
		}
	}
	out := make([]float32, len(tokens))
	for id, text := range tokens {
		if n, ok := rank[text]; ok {
			out[id] = -float32(n)
		}
	}
	return out
}

func (n *normalizer) prepends() bool {
	if n == nil {
		return false
	}
	for _, m := range n.List {
		if m.prepends() {
			return true
		}
	}
	return n.Type == "Prepend"
}

// prepends reports whether a blank is put before a text, as Metaspace does unless told not to.
func (p *preTokenizer) prepends() bool {
	if p == nil {
		return false
	}
	for _, q := range p.List {
		if q.prepends() {
			return true
		}
	}
	return p.Type == "Metaspace" && p.Scheme != "never" && (p.AddPrefix == nil || *p.AddPrefix)
}

// cuts lists how a pre-tokenizer splits text, in a form that names can be looked up by.
func (p *preTokenizer) cuts() (list []string) {
	if p == nil {
		return nil
	}
	for _, q := range p.List {
		list = append(list, q.cuts()...)
	}
	switch {
	case p.Type == "Split" && p.Pattern.Regex != "":
		list = append(list, p.Pattern.Regex)
	case p.Type == "Split":
		list = append(list, "text:"+p.Pattern.String)
	case p.Type == "Digits" && p.Individual:
		list = append(list, `\p{N}`)
	case p.Type == "ByteLevel" && (p.UseRegex == nil || *p.UseRegex):
		list = append(list, gpt2Words)
	}
	return list
}

// The published expressions of the pre-tokenizers that models have.
const (
	gpt2Words     = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	contractions  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	llamaLetters  = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|`
	llamaTail     = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	casedWord     = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	casedUpper    = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
	casedTail     = `| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	separatedCuts = " THEN "
)

// preNames are values of tokenizer.ggml.pre by what is split; the second where a word that is
// a token is taken at once.
var preNames = map[string][2]string{
	gpt2Words:                               {"gpt-2", ""},
	`\p{N}` + separatedCuts + gpt2Words:     {"smollm", ""},
	llamaLetters + `\p{N}{1,3}` + llamaTail: {"dbrx", "llama-bpe"},
	llamaLetters + `\p{N}` + llamaTail:      {"qwen2", ""},
	casedWord + contractions + `?|` + casedUpper + contractions + `?|\p{N}{1,3}` + casedTail: {"gpt-4o", ""},
	casedWord + `|` + casedUpper + `|\p{N}` + casedTail:                                      {"", "tekken"},
}

// pre is the name of the pre-tokenizer.
func (t *tokenizerJSON) pre() (string, error) {
	cuts := strings.Join(t.PreTokenizer.cuts(), separatedCuts)
	names, ok := preNames[cuts]
	if t.Model.IgnoreMerges && names[1] != "" {
		return names[1], nil
	}
	if !ok || names[0] == "" {
		return "", fmt.Errorf("pre_tokenizer splits by %.400s, which is not known", gguf.Quote(cuts))
	}
	return names[0], nil
}

// special are the keys of special tokens and of the chat template.
func (t *tokenizerJSON) special(settings tokenizerConfig, tokens []string, c *config) (list []entry) {
	ids := make(map[string]uint32)
	for _, added := range t.Added {
		if added.ID >= 0 {
			ids[added.Content] = uint32(added.ID)
		}
	}
	for _, s := range []struct {
		key    string
		name   json.RawMessage
		number json.RawMessage
	}{
		{"bos_token_id", settings.BOS, c.raw.BOS}, {"eos_token_id", settings.EOS, c.raw.EOS}, {"padding_token_id", settings.PAD, c.raw.PAD},
	} {
		id, ok := ids[contentOf(s.name)]
		if !ok {
			id, ok = firstNumber(s.number)
		}
		if ok && int(id) < len(tokens) {
			list = append(list, entry{"tokenizer.ggml." + s.key, id})
		}
	}
	add := settings.AddBOS
	if add == nil {
		begins := t.begins()
		add = &begins
	}
	list = append(list, entry{"tokenizer.ggml.add_bos_token", *add})
	if settings.AddEOS != nil {
		list = append(list, entry{"tokenizer.ggml.add_eos_token", *settings.AddEOS})
	}
	if template := templateOf(settings.Template); template != "" {
		list = append(list, entry{"tokenizer.chat_template", template})
	}
	return list
}

// templateOf is a chat template, or that with the name "default" of a list of them.
func templateOf(text json.RawMessage) (template string) {
	if json.Unmarshal(text, &template) == nil {
		return template
	}
	var list []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	_ = json.Unmarshal(text, &list) // of anything else nothing is read
	for _, named := range list {
		if named.Name == "default" {
			return named.Template
		}
	}
	return ""
}

// begins reports whether the post-processor puts a special token before a text.
func (t *tokenizerJSON) begins() bool {
	first := func(list []map[string]json.RawMessage) bool { return len(list) > 0 && list[0]["SpecialToken"] != nil }
	for _, p := range t.Processor.Processors {
		if first(p.Single) {
			return true
		}
	}
	return first(t.Processor.Single)
}

// contentOf is a token's text, which stands alone or in an object.
func contentOf(text json.RawMessage) string {
	var s string
	if json.Unmarshal(text, &s) == nil {
		return s
	}
	var object struct {
		Content string `json:"content"`
	}
	if json.Unmarshal(text, &object) == nil {
		return object.Content
	}
	return ""
}

// firstNumber is an id, or the first of a list of them.
func firstNumber(text json.RawMessage) (uint32, bool) {
	var one uint32
	if len(text) > 0 && string(text) != "null" && json.Unmarshal(text, &one) == nil {
		return one, true
	}
	var list []uint32
	if json.Unmarshal(text, &list) == nil && len(list) > 0 {
		return list[0], true
	}
	return 0, false
}
