package synth

import "tgc/gguf"

// role is what a matrix does, which decides its type in a mixture.
type role int

const (
	plainRole  role = iota // query, key, gate, up, attention output
	embedRole              // token embedding
	outputRole             // output matrix, also a tied embedding
	valueRole              // attention values: errors here add up unsmoothed
	downRole               // second feed-forward matrix: likewise
)

// mixture says which tensor is stored in which type. The rules are those by
// which the published files of the same name were quantised.
type mixture struct {
	fileType uint32 // general.file_type
	base     gguf.Type
	output   gguf.Type // of output matrices
	embed    gguf.Type // of an embedding that is not the output matrix too
	more     gguf.Type // of values and down projections in the layers moreBits picks
}

var (
	mixF16  = mixture{fileType: 1, base: gguf.F16, output: gguf.F16, embed: gguf.F16, more: gguf.F16}
	mixQ8   = mixture{fileType: 7, base: gguf.Q8_0, output: gguf.Q8_0, embed: gguf.Q8_0, more: gguf.Q8_0}
	mixQ4KM = mixture{fileType: 15, base: gguf.Q4_K, output: gguf.Q6_K, embed: gguf.Q4_K, more: gguf.Q6_K}
	mixQ5KM = mixture{fileType: 17, base: gguf.Q5_K, output: gguf.Q6_K, embed: gguf.Q5_K, more: gguf.Q6_K}
	mixQ6K  = mixture{fileType: 18, base: gguf.Q6_K, output: gguf.Q6_K, embed: gguf.Q6_K, more: gguf.Q6_K}
	// mixTiny has two types in one layer, as larger mixtures do.
	mixTiny = mixture{fileType: 18, base: gguf.Q6_K, output: gguf.Q8_0, embed: gguf.Q8_0, more: gguf.Q8_0}
)

// shortRows replaces a type where the row length is no multiple of its block's
// elements; for others that is F16.
var shortRows = map[gguf.Type]gguf.Type{
	gguf.Q4_K: gguf.Q5_0,
	gguf.Q5_K: gguf.Q5_1,
	gguf.Q6_K: gguf.Q8_0,
	gguf.Q3_K: gguf.IQ4_NL, gguf.IQ4_XS: gguf.IQ4_NL,
}

// moreBits picks the first and last eighth of the layers and every third
// between: there, quantisation hurts most.
func moreBits(layer, layers int) bool {
	first := layers / 8
	return layer < first || layer >= 7*layers/8 || (layer-first)%3 == 2
}

// typeOf returns the type of a matrix.
func (m *mixture) typeOf(r role, layer, layers, rowLength int) gguf.Type {
	t := m.base
	switch {
	case r == outputRole:
		t = m.output
	case r == embedRole:
		t = m.embed
	case (r == valueRole || r == downRole) && moreBits(layer, layers):
		t = m.more
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
