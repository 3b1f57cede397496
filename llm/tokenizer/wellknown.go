package tokenizer

import (
	"maps"
	"slices"
)

// Files often give well-known special tokens the wrong type, or say nothing of
// their purpose. As llama.cpp does, tokens are therefore recognised by name.

// purposes lists, for the special ids that a file may leave out, the names by
// which they are found. The token found is a control token.
var purposes = []struct {
	id    func(*Vocabulary) *int32
	names []string
	// ends says that the token, found or named by the file, ends a text.
	ends bool
}{
	{
		id: func(v *Vocabulary) *int32 { return &v.EOT },
		names: []string{
			"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>",
			"_<EOT>", "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>",
		},
		ends: true,
	},
	{
		id:    func(v *Vocabulary) *int32 { return &v.EOM },
		names: []string{"<|eom_id|>"},
		ends:  true,
	},
	{
		id: func(v *Vocabulary) *int32 { return &v.FIMPrefix },
		names: []string{
			"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>",
			"<|prefix|>",
		},
	},
	{
		id: func(v *Vocabulary) *int32 { return &v.FIMSuffix },
		names: []string{
			"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>",
			"<|suffix|>",
		},
	},
	{
		id: func(v *Vocabulary) *int32 { return &v.FIMMiddle },
		names: []string{
			"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>",
			"<|middle|>",
		},
	},
	{
		id:    func(v *Vocabulary) *int32 { return &v.FIMPad },
		names: []string{"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"},
		ends:  true,
	},
	{
		id:    func(v *Vocabulary) *int32 { return &v.FIMRepository },
		names: []string{"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"},
		ends:  true,
	},
	{
		id:    func(v *Vocabulary) *int32 { return &v.FIMFileSeparator },
		names: []string{"<|file_sep|>"},
		ends:  true,
	},
}

// endNames are control tokens that end a text in every vocabulary.
var endNames = []string{
	"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
	"<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
	"<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
}

// shownNames are tokens of message framing that a program wants to see.
var shownNames = []string{"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"}

// recognise completes the special ids and the types of v by name and returns
// the ids that end a text, in ascending order. It needs its own copy of
// v.Types.
func (v *Vocabulary) recognise(ids map[string]int32) []int32 {
	ends := map[int32]bool{}
	for _, p := range purposes {
		id := p.id(v)
		if *id == NoToken {
			if *id = first(ids, p.names); *id != NoToken {
				v.Types[*id] = TypeControl
			}
		}
		if p.ends && *id != NoToken {
			ends[*id] = true
		}
	}
	for _, name := range endNames {
		if id, ok := ids[name]; ok {
			ends[id] = true
			v.Types[id] = TypeControl
		}
	}
	for _, name := range shownNames {
		if id, ok := ids[name]; ok {
			v.Types[id] = TypeUserDefined
		}
	}
	if v.EOS != NoToken {
		ends[v.EOS] = true
	}
	v.withdrawEnds(ids, ends)
	return slices.Sorted(maps.Keys(ends))
}

// withdrawEnds takes back names that end a text in most vocabularies but not
// next to certain others: <|end|> closes only a message where calls have
// their own tokens, and </s> is text where <|tool_response> exists.
func (v *Vocabulary) withdrawEnds(ids map[string]int32, ends map[int32]bool) {
	ended := func(name string) bool {
		id, ok := ids[name]
		return ok && ends[id]
	}
	withdraw := func(name string, newType int32) {
		if id, ok := ids[name]; ok && ends[id] {
			delete(ends, id)
			v.Types[id] = newType
		}
	}
	call := ended("<|call|>") || ended("<|calls|>")
	if call && (ended("<|return|>") || ended("<|flush|>")) {
		withdraw("<|end|>", TypeUserDefined)
	}
	if ended("<|tool_response>") {
		withdraw("</s>", TypeNormal)
	}
}

// first returns the smallest id that has one of the names, or NoToken.
func first(ids map[string]int32, names []string) int32 {
	found := NoToken
	for _, name := range names {
		if id, ok := ids[name]; ok && (found == NoToken || id < found) {
			found = id
		}
	}
	return found
}
