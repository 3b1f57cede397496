package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// NoToken is the id of a token that a vocabulary does not have.
const NoToken int32 = -1

// Token types, as in tokenizer.ggml.token_type.
const (
	TypeUndefined   int32 = 0
	TypeNormal      int32 = 1
	TypeUnknown     int32 = 2
	TypeControl     int32 = 3 // <s>, <|im_start|>: structure, not text
	TypeUserDefined int32 = 4 // added to the vocabulary; matches as a whole wherever it occurs
	TypeUnused      int32 = 5
	TypeByte        int32 = 6 // <0x0A>: one byte
)

// A Vocabulary is what a GGUF file says about its tokenizer, under the keys
// tokenizer.ggml.*. Ids are NoToken and pointers nil where the file says
// nothing; start from NewVocabulary.
type Vocabulary struct {
	Model string // "llama" (SentencePiece) or "gpt2" (byte-level BPE)
	Pre   string // pre-tokenizer of a gpt2 vocabulary

	Tokens []string
	Scores []float32 // empty: all 0
	Types  []int32   // empty: all TypeNormal
	Merges []string  // gpt2: "left right", best first

	BOS, EOS, UNK, PAD                      int32
	EOT, EOM                                int32 // end of turn, end of message
	SEP, MASK                               int32
	FIMPrefix, FIMSuffix, FIMMiddle         int32 // fill in the middle
	FIMPad, FIMRepository, FIMFileSeparator int32

	AddBOS, AddEOS *bool // nil: the default of model and pre-tokenizer
	AddSpacePrefix *bool // nil: true; used by "llama" only
}

// NewVocabulary returns a vocabulary with no tokens and no special ids.
func NewVocabulary(model, pre string) *Vocabulary {
	v := &Vocabulary{Model: model, Pre: pre}
	for _, field := range v.idFields() {
		*field.id = NoToken
	}
	return v
}

// idFields pairs the special ids with their keys, the deprecated ones last.
func (v *Vocabulary) idFields() []idField {
	return []idField{
		{"bos_token_id", &v.BOS}, {"eos_token_id", &v.EOS}, {"unknown_token_id", &v.UNK},
		{"padding_token_id", &v.PAD}, {"eot_token_id", &v.EOT}, {"eom_token_id", &v.EOM},
		{"seperator_token_id", &v.SEP}, // spelled so in the format
		{"mask_token_id", &v.MASK},
		{"fim_pre_token_id", &v.FIMPrefix}, {"fim_suf_token_id", &v.FIMSuffix}, {"fim_mid_token_id", &v.FIMMiddle},
		{"fim_pad_token_id", &v.FIMPad}, {"fim_rep_token_id", &v.FIMRepository},
		{"fim_sep_token_id", &v.FIMFileSeparator},
		{"prefix_token_id", &v.FIMPrefix}, {"suffix_token_id", &v.FIMSuffix}, {"middle_token_id", &v.FIMMiddle},
	}
}

type idField struct {
	key string // after "tokenizer.ggml."
	id  *int32
}

// Metadata reads the keys of a GGUF file. Each method returns ok false for a
// key that is absent, and an error that names the key for a value of another
// kind. Ints and Floats accept arrays of any integer type, Floats also of
// floating-point types.
type Metadata interface {
	String(key string) (value string, ok bool, err error)
	Uint(key string) (value uint64, ok bool, err error)
	Bool(key string) (value bool, ok bool, err error)
	Strings(key string) (values []string, ok bool, err error)
	Ints(key string) (values []int32, ok bool, err error)
	Floats(key string) (values []float32, ok bool, err error)
}

// FromMetadata reads the vocabulary of a GGUF file. It checks what the types
// of the keys cannot express only as far as reading needs; New checks the rest.
func FromMetadata(m Metadata) (*Vocabulary, error) {
	r := &metadataReader{m: m}
	v := NewVocabulary("", "")
	if !read(r, "model", m.String, &v.Model) {
		r.missing("model")
	}
	read(r, "pre", m.String, &v.Pre)
	if !read(r, "tokens", m.Strings, &v.Tokens) {
		r.missing("tokens")
	}
	read(r, "scores", m.Floats, &v.Scores)
	read(r, "token_type", m.Ints, &v.Types)
	if !read(r, "merges", m.Strings, &v.Merges) && v.Model == modelBPE {
		r.missing("merges")
	}
	for _, field := range v.idFields() {
		r.id(field)
	}
	r.flag("add_bos_token", &v.AddBOS)
	r.flag("add_eos_token", &v.AddEOS)
	r.flag("add_space_prefix", &v.AddSpacePrefix)
	if v.Model == modelSPM {
		v.assumeLlamaIDs()
	}
	r.refuseSuppressed()
	if r.err != nil {
		return nil, fmt.Errorf("tokenizer: %w", r.err)
	}
	return v, nil
}

// assumeLlamaIDs fills in what the earliest files of the kind left out.
func (v *Vocabulary) assumeLlamaIDs() {
	for id, field := range []*int32{&v.UNK, &v.BOS, &v.EOS} {
		if *field == NoToken && id < len(v.Tokens) {
			*field = int32(id)
		}
	}
}

// A metadataReader keeps the first error.
type metadataReader struct {
	m   Metadata
	err error
}

const keyPrefix = "tokenizer.ggml."

func read[T any](r *metadataReader, key string, get func(string) (T, bool, error), to *T) bool {
	value, ok, err := get(keyPrefix + key)
	r.fail(err)
	if ok && err == nil {
		*to = value
	}
	return ok || err != nil
}

// refuseSuppressed refuses a list of tokens that a model must never say: no sampler here
// asks for it. The keys of llama.cpp that change what tokens a text becomes, beside those
// that are read, are of other kinds of vocabularies (BERT's, T5's).
func (r *metadataReader) refuseSuppressed() {
	var ids []int32
	if read(r, "suppress_tokens", r.m.Ints, &ids) && len(ids) > 0 {
		r.fail(fmt.Errorf("%ssuppress_tokens: lists %d tokens that are never to be drawn, which is not known here", keyPrefix, len(ids)))
	}
}

func (r *metadataReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *metadataReader) missing(key string) {
	r.fail(fmt.Errorf("%s%s is missing: the file has no usable vocabulary", keyPrefix, key))
}

func (r *metadataReader) id(field idField) {
	var value uint64
	if !read(r, field.key, r.m.Uint, &value) || r.err != nil {
		return
	}
	if value > math.MaxInt32 {
		r.fail(fmt.Errorf("%s%s: id %d is in no vocabulary", keyPrefix, field.key, value))
		return
	}
	*field.id = int32(value)
}

func (r *metadataReader) flag(key string, to **bool) {
	var value bool
	if read(r, key, r.m.Bool, &value) && r.err == nil {
		*to = &value
	}
}

// The values of Vocabulary.Model.
const (
	modelSPM = "llama"
	modelBPE = "gpt2"
)

// index checks the vocabulary and returns the map from texts to ids. Empty
// tokens have no entry: no text is made of them.
func (v *Vocabulary) index() (map[string]int32, error) {
	if v.Model != modelSPM && v.Model != modelBPE {
		return nil, fmt.Errorf("tokenizer.ggml.model: unknown model %s, want %q or %q", quote(v.Model), modelSPM, modelBPE)
	}
	n := len(v.Tokens)
	switch {
	case n == 0:
		return nil, errors.New("tokenizer.ggml.tokens: the vocabulary is empty")
	case n > math.MaxInt32/2 || len(v.Merges) > math.MaxInt32/8:
		return nil, fmt.Errorf("tokenizer.ggml.tokens: %d tokens and %d merges are too many", n, len(v.Merges))
	case len(v.Scores) > 0 && len(v.Scores) < n:
		return nil, fmt.Errorf("tokenizer.ggml.scores: got %d scores, want one for each of %d tokens", len(v.Scores), n)
	case len(v.Types) > 0 && len(v.Types) < n:
		return nil, fmt.Errorf("tokenizer.ggml.token_type: got %d types, want one for each of %d tokens", len(v.Types), n)
	}
	for i, t := range v.Types {
		if t < TypeUndefined || t > TypeByte {
			return nil, fmt.Errorf("tokenizer.ggml.token_type[%d]: got %d, want %d to %d", i, t, TypeUndefined, TypeByte)
		}
	}
	for _, field := range v.idFields() {
		if *field.id < NoToken || int(*field.id) >= n {
			return nil, fmt.Errorf("tokenizer.ggml.%s: got %d, want less than %d, the number of tokens", field.key, *field.id, n)
		}
	}
	ids := make(map[string]int32, n)
	for i, text := range v.Tokens {
		if text == "" {
			continue
		}
		if first, ok := ids[text]; ok {
			return nil, fmt.Errorf("tokenizer.ggml.tokens: tokens %d and %d are both %s", first, i, quote(text))
		}
		ids[text] = int32(i)
	}
	return ids, nil
}

// quote makes a text of a file fit for a message: escaped, and cut.
func quote(s string) string {
	const most = 60 // bytes
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "..."
	}
	return strconv.QuoteToASCII(s)
}
