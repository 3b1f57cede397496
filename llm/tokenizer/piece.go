package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A pieceTable holds the bytes that each token means.
type pieceTable struct {
	bytes string   // all pieces, one after the other
	ends  []uint32 // end of each piece in bytes
}

func newPieceTable(v *Vocabulary) (*pieceTable, error) {
	t := &pieceTable{ends: make([]uint32, len(v.Tokens))}
	size := 0
	for _, text := range v.Tokens {
		size += len(text)
	}
	if size > math.MaxInt32 {
		return nil, errors.New("tokenizer.ggml.tokens: more than 2 GiB of text")
	}
	alphabet := newByteAlphabet()
	all := make([]byte, 0, size)
	for id, text := range v.Tokens {
		switch v.Types[id] {
		case TypeUnknown, TypeControl, TypeUserDefined:
			all = append(all, text...)
		case TypeNormal:
			if v.Model == modelSPM {
				all = append(all, strings.ReplaceAll(text, spaceSign, " ")...)
				break
			}
			start := len(all)
			var ok bool
			if all, ok = alphabet.appendBytes(all, text); !ok {
				all = append(all[:start], text...) // not of the alphabet: as it is
			}
		case TypeByte:
			value, err := byteValue(text)
			if err != nil {
				return nil, fmt.Errorf("tokenizer.ggml.tokens[%d]: %w", id, err)
			}
			all = append(all, value)
		} // unused and undefined tokens mean nothing
		t.ends[id] = uint32(len(all))
	}
	t.bytes = string(all)
	return t, nil
}

// byteValue reads the text of a byte token, <0x0A>.
func byteValue(text string) (byte, error) {
	if len(text) == 6 && strings.HasPrefix(text, "<0x") && text[5] == '>' {
		if value, err := strconv.ParseUint(text[3:5], 16, 8); err == nil {
			return byte(value), nil
		}
	}
	return 0, fmt.Errorf("byte token %s, want one like <0x0A>", quote(text))
}

func (t *pieceTable) piece(id int32) string {
	start := uint32(0)
	if id > 0 {
		start = t.ends[id-1]
	}
	return t.bytes[start:t.ends[id]]
}

// Piece returns the bytes that a token means, special tokens by name. It
// need not be UTF-8: a character may be spread over tokens (see Stream). An id
// outside the vocabulary has no bytes.
func (t *Tokenizer) Piece(id int32) []byte { return t.AppendPiece(nil, id, true) }

// AppendPiece appends the piece of a token to dst. Control and unknown tokens
// are left out unless showSpecial.
func (t *Tokenizer) AppendPiece(dst []byte, id int32, showSpecial bool) []byte {
	if !t.valid(id) || !showSpecial && t.IsSpecial(id) {
		return dst
	}
	return append(dst, t.pieces.piece(id)...)
}

// Decode returns the pieces of the ids joined. Control and unknown tokens are
// left out unless showSpecial. What a "llama" vocabulary put before the text,
// a space, stays.
func (t *Tokenizer) Decode(ids []int32, showSpecial bool) []byte {
	out := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		out = t.AppendPiece(out, id, showSpecial)
	}
	return out
}

// A Stream decodes tokens one by one into text that is cut between
// characters: the bytes of a character that is not complete wait for the next
// token. Bytes that cannot become UTF-8 pass unchanged.
type Stream struct {
	tokenizer   *Tokenizer
	showSpecial bool
	pending     []byte
}

// NewStream starts the decoding of a sequence of tokens.
func (t *Tokenizer) NewStream(showSpecial bool) *Stream {
	return &Stream{tokenizer: t, showSpecial: showSpecial}
}

// Next takes a token and returns the text that is complete with it.
func (s *Stream) Next(id int32) string {
	s.pending = s.tokenizer.AppendPiece(s.pending, id, s.showSpecial)
	ready := len(s.pending) - incompleteTail(s.pending)
	text := string(s.pending[:ready])
	s.pending = append(s.pending[:0], s.pending[ready:]...)
	return text
}

// Flush returns the bytes still waiting, at the end of the sequence.
func (s *Stream) Flush() string {
	text := string(s.pending)
	s.pending = s.pending[:0]
	return text
}

// incompleteTail returns the length of the beginning of a character at the
// end of b, 0 to 3.
func incompleteTail(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
