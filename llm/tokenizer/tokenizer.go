package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
)

// A Tokenizer translates between text and the token ids of one vocabulary.
type Tokenizer struct {
	vocabulary *Vocabulary
	ids        map[string]int32 // text of a token, as the file spells it
	pieces     *pieceTable
	ends       []int32 // ascending

	always  *specials // user-defined tokens
	parsed  *specials // and control and unknown tokens
	spm     *spm      // one of spm
	bpe     *bpe      // and bpe is set
	addBOS  bool
	addEOS  bool
	scratch sync.Pool // of *merger
}

// New checks a vocabulary and builds its tokenizer. v is not changed; its
// slices of strings are kept.
func New(v *Vocabulary) (*Tokenizer, error) {
	ids, err := v.index()
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	own := *v
	own.Types = slices.Clone(v.Types)
	for len(own.Types) < len(v.Tokens) {
		own.Types = append(own.Types, TypeNormal)
	}
	t := &Tokenizer{vocabulary: &own, ids: ids, ends: own.recognise(ids)}
	t.scratch.New = func() any { return new(merger) }
	if t.pieces, err = newPieceTable(&own); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	bosByDefault := true
	if own.Model == modelBPE {
		if t.bpe, err = newBPE(&own, ids); err != nil {
			return nil, err
		}
		bosByDefault = t.bpe.pre.addBOS
	} else if t.spm, err = newSPM(&own, ids); err != nil {
		return nil, err
	}
	if t.addBOS, err = addition("bos", own.AddBOS, bosByDefault, own.BOS); err != nil {
		return nil, err
	}
	if t.addEOS, err = addition("eos", own.AddEOS, false, own.EOS); err != nil {
		return nil, err
	}
	t.always = newSpecials(&own, func(tokenType int32) bool { return tokenType == TypeUserDefined })
	t.parsed = newSpecials(&own, func(tokenType int32) bool {
		return tokenType == TypeUserDefined || tokenType == TypeControl || tokenType == TypeUnknown
	})
	return t, nil
}

// addition decides whether a special token is added to a text.
func addition(name string, wish *bool, byDefault bool, id int32) (bool, error) {
	if wish == nil {
		return byDefault && id != NoToken, nil
	}
	if *wish && id == NoToken {
		return false, fmt.Errorf("tokenizer: tokenizer.ggml.add_%s_token is true, but tokenizer.ggml.%s_token_id is missing", name, name)
	}
	return *wish, nil
}

// Encode returns the ids of a text. With addSpecial the tokens that the
// vocabulary wants around a text are added (BOS, EOS); with parseSpecial the
// names of control tokens in the text, such as <|im_start|>, become those
// tokens. Text from outside should be encoded without.
//
// In a "gpt2" vocabulary bytes that are not UTF-8 are read as U+FFFD, and
// bytes without a token are left out.
func (t *Tokenizer) Encode(text string, addSpecial, parseSpecial bool) ([]int32, error) {
	if len(text) > math.MaxInt32/8 {
		return nil, errors.New("tokenizer: the text is longer than 256 MiB")
	}
	matcher := t.always
	if parseSpecial {
		matcher = t.parsed
	}
	var out []int32
	if addSpecial && t.addBOS {
		out = append(out, t.vocabulary.BOS)
	}
	out, err := t.encode(out, text, matcher.partition(text, admitAll))
	if err != nil {
		return nil, err
	}
	if addSpecial && t.addEOS {
		out = append(out, t.vocabulary.EOS)
	}
	return out, nil
}

// encode appends the ids of a text that is cut into special tokens and text between.
func (t *Tokenizer) encode(out []int32, text string, fragments []fragment) ([]int32, error) {
	out = slices.Grow(out, len(text)/4+2)
	work := t.scratch.Get().(*merger)
	defer t.scratch.Put(work)
	afterSpecial := true
	for _, f := range fragments {
		if f.id != NoToken {
			out = append(out, f.id)
			afterSpecial = true
			continue
		}
		var err error
		if out, err = t.encodeText(out, text[f.start:f.end], afterSpecial, work); err != nil {
			return nil, err
		}
		afterSpecial = false
	}
	return out, nil
}

func (t *Tokenizer) encodeText(out []int32, text string, afterSpecial bool, work *merger) ([]int32, error) {
	if t.bpe != nil {
		return t.bpe.encode(out, text, work), nil
	}
	return t.spm.encode(out, text, afterSpecial, work)
}

// VocabSize returns the number of tokens.
func (t *Tokenizer) VocabSize() int { return len(t.vocabulary.Tokens) }

// BOS returns the token that begins a text, or NoToken.
func (t *Tokenizer) BOS() int32 { return t.vocabulary.BOS }

// EOS returns the token that ends a text, or NoToken. IsEndOfText knows all
// that do.
func (t *Tokenizer) EOS() int32 { return t.vocabulary.EOS }

// AddsBOS tells whether Encode puts BOS first when asked for special tokens.
func (t *Tokenizer) AddsBOS() bool { return t.addBOS }

// AddsEOS tells whether Encode puts EOS last when asked for special tokens.
func (t *Tokenizer) AddsEOS() bool { return t.addEOS }

// IsEndOfText tells whether generation stops at a token: EOS, the end of a
// turn or message, and the like.
func (t *Tokenizer) IsEndOfText(id int32) bool {
	_, found := slices.BinarySearch(t.ends, id)
	return found
}

// EndOfText returns all tokens that generation stops at, in ascending order.
func (t *Tokenizer) EndOfText() []int32 { return slices.Clone(t.ends) }

// TokenID returns the token whose text in the vocabulary is name, as in
// "<|im_end|>", or NoToken.
func (t *Tokenizer) TokenID(name string) int32 {
	if id, ok := t.ids[name]; ok {
		return id
	}
	return NoToken
}

// TokenText returns the text of a token as the vocabulary spells it, "" for an
// id outside of it. Piece returns what a program shows.
func (t *Tokenizer) TokenText(id int32) string {
	if !t.valid(id) {
		return ""
	}
	return t.vocabulary.Tokens[id]
}

// TokenType returns the type of a token, corrected for well-known names;
// TypeUndefined for an id outside the vocabulary.
func (t *Tokenizer) TokenType(id int32) int32 {
	if !t.valid(id) {
		return TypeUndefined
	}
	return t.vocabulary.Types[id]
}

// IsSpecial tells whether a token is structure, not text: control or unknown.
func (t *Tokenizer) IsSpecial(id int32) bool {
	switch t.TokenType(id) {
	case TypeControl, TypeUnknown:
		return true
	}
	return false
}

func (t *Tokenizer) valid(id int32) bool {
	return id >= 0 && int(id) < len(t.vocabulary.Tokens)
}
