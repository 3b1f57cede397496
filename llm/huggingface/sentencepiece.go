package huggingface

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"tgc/gguf"
	tok "tgc/llm/tokenizer"
)

// sentencePieceFile is the vocabulary of folders that have no tokenizer.json.
const sentencePieceFile = "tokenizer.model"

// Kinds of SentencePiece models (TrainerSpec.model_type); pairs are merged in one of them.
const (
	unigramPieces = 1
	mergedPieces  = 2
)

// sentencePiece is what is read of a SentencePiece model: the message ModelProto of its
// sentencepiece_model.proto.
type sentencePiece struct {
	tokens []string
	types  []int32
	scores []float32

	kind        uint64
	unknown     uint64
	begin, end  uint64
	rules       []byte // that characters are replaced by before anything else
	prefixSpace bool
	fewerSpaces bool // several blanks become one
	escapes     bool // blanks become U+2581
}

// parseSentencePiece reads tokenizer.model. What a file leaves out has the values that the
// definition gives it.
func parseSentencePiece(data []byte) (*sentencePiece, error) {
	p := &sentencePiece{kind: unigramPieces, begin: 1, end: 2, prefixSpace: true, fewerSpaces: true, escapes: true}
	err := readWire(data, func(f wireField) error {
		if f.kind != wireBytes {
			return nil
		}
		switch f.number {
		case 1:
			return p.piece(f.bytes)
		case 2:
			return readWire(f.bytes, p.trainer)
		case 3:
			return readWire(f.bytes, p.normalizer)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(p.tokens) == 0:
		return nil, errors.New("it has no pieces")
	case p.kind != mergedPieces:
		return nil, fmt.Errorf("model_type is %d, want %d (BPE): unigram and other kinds are of no architecture that is read", p.kind, mergedPieces)
	case len(p.rules) > 0:
		return nil, errors.New("normalizer_spec has rules for characters, want the identity")
	case p.fewerSpaces:
		return nil, errors.New("normalizer_spec removes blanks (remove_extra_whitespaces), want that it keeps them")
	case !p.escapes:
		return nil, errors.New("normalizer_spec does not escape blanks (escape_whitespaces), want that it does")
	}
	return p, nil
}

// piece reads one SentencePiece.
func (p *sentencePiece) piece(message []byte) error {
	text, score, kind := "", float32(0), uint64(tok.TypeNormal)
	err := readWire(message, func(f wireField) error {
		switch {
		case f.number == 1 && f.kind == wireBytes:
			text = string(f.bytes)
		case f.number == 2 && f.kind == wireFixed32:
			score = f.float()
		case f.number == 3 && f.kind == wireVarint:
			kind = f.value
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(p.tokens) == maxVocabulary:
		return fmt.Errorf("more than %d pieces", maxVocabulary)
	case kind < uint64(tok.TypeNormal) || kind > uint64(tok.TypeByte): // the numbers are GGUF's
		return fmt.Errorf("piece %d is of type %d, want %d to %d", len(p.tokens), kind, tok.TypeNormal, tok.TypeByte)
	case score != score:
		return fmt.Errorf("piece %d has the score NaN", len(p.tokens))
	case !utf8.ValidString(text):
		return fmt.Errorf("piece %d is %s, want UTF-8", len(p.tokens), gguf.Quote(text))
	}
	p.tokens, p.types, p.scores = append(p.tokens, text), append(p.types, int32(kind)), append(p.scores, score)
	return nil
}

// trainer reads a field of TrainerSpec, normalizer one of NormalizerSpec.
func (p *sentencePiece) trainer(f wireField) error {
	if place, ok := map[uint64]*uint64{3: &p.kind, 40: &p.unknown, 41: &p.begin, 42: &p.end}[f.number]; ok && f.kind == wireVarint {
		*place = f.value
	}
	return nil
}

func (p *sentencePiece) normalizer(f wireField) error {
	if f.number == 2 && f.kind == wireBytes {
		p.rules = f.bytes
	}
	if place, ok := map[uint64]*bool{3: &p.prefixSpace, 4: &p.fewerSpaces, 5: &p.escapes}[f.number]; ok && f.kind == wireVarint {
		*place = f.bool()
	}
	return nil
}

// translateSentencePiece makes the keys of a vocabulary of pieces, with the tokens that
// added_tokens.json and tokenizer_config.json put after them or in their place.
func translateSentencePiece(data []byte, added map[string]int32, settings tokenizerConfig, c *config) ([]entry, error) {
	p, err := parseSentencePiece(data)
	if err != nil {
		return nil, err
	}
	if len(p.tokens) > c.vocabulary {
		return nil, fmt.Errorf("it has %d pieces, more than vocab_size %d", len(p.tokens), c.vocabulary)
	}
	t := &tokenizerJSON{}
	for id, kind := range p.types {
		if kind == tok.TypeControl || kind == tok.TypeUserDefined || kind == tok.TypeUnknown {
			t.Added = append(t.Added, addedToken{int32(id), p.tokens[id], kind == tok.TypeControl})
		}
	}
	for id := len(p.tokens); id < c.vocabulary; id++ {
		p.tokens, p.types, p.scores = append(p.tokens, fmt.Sprintf("[PAD%d]", id)), append(p.types, tok.TypeUnused), append(p.scores, 0)
	}
	if err := p.addTokens(t, added, settings); err != nil {
		return nil, err
	}
	if settings.AddBOS == nil { // the default of the tokenizers that read such files
		begins := true
		settings.AddBOS = &begins
	}
	settings.BOS = p.orPiece(settings.BOS, c.raw.BOS, p.begin)
	settings.EOS = p.orPiece(settings.EOS, c.raw.EOS, p.end)
	list := []entry{
		{"tokenizer.ggml.model", "llama"}, {"tokenizer.ggml.tokens", p.tokens}, {"tokenizer.ggml.token_type", p.types},
		{"tokenizer.ggml.scores", p.scores}, {"tokenizer.ggml.add_space_prefix", p.prefixSpace},
	}
	if p.unknown < uint64(len(p.tokens)) {
		list = append(list, entry{"tokenizer.ggml.unknown_token_id", uint32(p.unknown)})
	}
	return append(list, t.special(settings, p.tokens, c)...), nil
}

// orPiece is the name of a special token: the one that is set, or that of the model file
// where config.json has no number for it either.
func (p *sentencePiece) orPiece(name, number json.RawMessage, id uint64) json.RawMessage {
	if _, ok := firstNumber(number); ok || contentOf(name) != "" || id >= uint64(len(p.tokens)) {
		return name
	}
	text, _ := json.Marshal(p.tokens[id]) // a string always can be
	return text
}

// addTokens puts the tokens of the two files that publishers add tokens by in their places.
func (p *sentencePiece) addTokens(t *tokenizerJSON, added map[string]int32, settings tokenizerConfig) error {
	put := func(id int32, text string, special bool) error {
		if id < 0 || int(id) >= len(p.tokens) {
			return fmt.Errorf("added token %s has id %d, outside vocab_size %d", gguf.Quote(text), id, len(p.tokens))
		}
		if p.tokens[id] == text && (p.types[id] == tok.TypeUnknown || p.types[id] == tok.TypeControl) {
			return nil
		}
		p.tokens[id], p.types[id] = text, tok.TypeUserDefined
		if special {
			p.types[id] = tok.TypeControl
		}
		t.Added = append(t.Added, addedToken{id, text, special})
		return nil
	}
	for _, text := range slices.Sorted(maps.Keys(added)) {
		if err := put(added[text], text, true); err != nil {
			return err
		}
	}
	for _, number := range slices.Sorted(maps.Keys(settings.Decoder)) {
		token := settings.Decoder[number]
		id, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			return fmt.Errorf("added_tokens_decoder has the id %s, want a number", gguf.Quote(number))
		}
		if err := put(int32(id), token.Content, token.Special); err != nil {
			return err
		}
	}
	return nil
}
