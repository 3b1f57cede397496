// Package tokenizer turns text into token ids and back, for the vocabularies
// that GGUF files carry. It is at both ends of the pipeline: before the
// prompt enters a model and after a token leaves it. It knows no model and no
// tensor; a [Vocabulary] is its whole input.
//
// Two families are supported:
//
//   - "llama": SentencePiece-style. Spaces become U+2581, neighbouring symbols
//     merge while a token exists for the pair, best score first; what has no
//     token falls back to byte tokens <0xXX> (spm.go).
//   - "gpt2": byte-level BPE. A pre-tokenizer cuts the text into words
//     (pretokenizer.go, split.go), the bytes of a word merge by rank (bpe.go).
//
// Encode first cuts out special tokens (special.go), then hands the text
// between them to the family. All of it runs in near-linear time in the text:
// long words merge through a priority queue over a linked list (merge.go), and
// special tokens are found with one automaton however many there are.
//
// No Unicode normalisation is done. The ids agree with those of llama.cpp;
// where a rule looks arbitrary, that is its origin.
//
// A Tokenizer is immutable and safe for concurrent use.
package tokenizer
