package synth

import "tgc/gguf"

// role is what a matrix does, which decides its type in a mixture.
type role int

const (
	plainRole  role = iota // query, gate, up
	embedRole              // token embedding
	outputRole             // output matrix, also a tied embedding
	keyRole                // attention keys
	valueRole              // attention values, also with queries and keys in one matrix: errors here add up unsmoothed
	joinRole               // attention output
	downRole               // second feed-forward matrix: as values
)

// mixture says which tensor is stored in which type.
type mixture struct {
	name     string
	fileType uint32 // general.file_type
	base     gguf.Type
	output   gguf.Type // of output matrices
	experts  gguf.Type // of the matrices of experts; F32: as the rules say
	rules    []rule    // the first one that fits a matrix decides; base if none does
}

// rule gives the matrices of a role a type, in the layers that where picks.
type rule struct {
	role  role
	where condition
	to    gguf.Type
}

// uniform is the mixture of one type throughout.
func uniform(t gguf.Type) *mixture {
	fileType, known := uniformFiles[t]
	if !known {
		fileType = guessedFileType
	}
	return &mixture{fileType: fileType, base: t, output: t}
}

// uniformFiles is general.file_type of files of one type throughout.
var uniformFiles = map[gguf.Type]uint32{
	gguf.F32: 0, gguf.F16: 1, gguf.Q4_0: 2, gguf.Q4_1: 3, gguf.Q8_0: 7, gguf.Q5_0: 8, gguf.Q5_1: 9,
	gguf.Q2_K: 10, gguf.Q3_K: 11, gguf.Q4_K: 14, gguf.Q5_K: 16, gguf.Q6_K: 18,
	gguf.IQ4_NL: 25, gguf.IQ3_S: 26, gguf.IQ4_XS: 30, gguf.BF16: 32,
}

// guessedFileType is general.file_type of files that have no number of their own.
const guessedFileType = 1024

// mixTiny has two types in one layer, as larger mixtures do.
var mixTiny = mixture{fileType: 18, base: gguf.Q6_K, output: gguf.Q8_0, rules: []rule{
	{embedRole, everywhere, gguf.Q8_0}, {valueRole, moreBits, gguf.Q8_0}, {downRole, moreBits, gguf.Q8_0},
}}

// shortRows replaces a type where the row length is no multiple of its block's
// elements; for others that is F16. As mixtures, it is llama.cpp's choice.
var shortRows = map[gguf.Type]gguf.Type{
	gguf.Q2_K: gguf.Q4_0, gguf.Q3_K: gguf.Q4_0, gguf.TQ1_0: gguf.Q4_0, gguf.TQ2_0: gguf.Q4_0, gguf.Q2_0: gguf.Q4_0,
	gguf.Q4_K: gguf.Q5_0, gguf.Q5_K: gguf.Q5_1, gguf.Q6_K: gguf.Q8_0,
	gguf.IQ1_S: gguf.IQ4_NL, gguf.IQ2_XXS: gguf.IQ4_NL, gguf.IQ2_XS: gguf.IQ4_NL, gguf.IQ2_S: gguf.IQ4_NL,
	gguf.IQ3_XXS: gguf.IQ4_NL, gguf.IQ3_S: gguf.IQ4_NL, gguf.IQ4_XS: gguf.IQ4_NL,
}

// typeOf returns the type of a matrix of the model.
func (s *Shape) typeOf(r role, layer, rowLength int) gguf.Type {
	m := s.mixture
	t := m.base
	if r == outputRole {
		t = m.output
	}
	for _, rule := range m.rules {
		if rule.role == r && rule.where(s, layer) {
			t = rule.to
			break
		}
	}
	for rowLength%t.Info().Elements != 0 {
		short, ok := shortRows[t]
		if !ok {
			short = gguf.F16
		}
		t = short
	}
	return t
}
