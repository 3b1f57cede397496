package packed

import (
	"slices"
	"sync"

	"tgc/ir"
)

// Where the words of weights lie in a record. Those that make weights together lie beside each other, so that a
// sweep over the weights reads addresses in their order: a core expects the next lines of what it reads, not
// those of three places in turn. Zen 4, one thread, Q6_K x bytes, GB/s: 26 to 28 (C), 10 with its high bits
// behind all low ones.

// wordOrder is where the words of a field lie among those of all, in bytes.
type wordOrder struct {
	first  int64 // word 0
	digits []Digit
}

// recordWords are the orders of the fields of formats with several fields of words.
var recordWords = sync.OnceValue(func() map[string]map[string]wordOrder {
	out := make(map[string]map[string]wordOrder)
	for name, words := range inWords() {
		if f, _ := Lookup(name); words {
			out[name] = f.orderWords()
		}
	}
	return out
})

// orderWords puts the words that make weights together beside each other, in the order of the field that has the
// fewest. nil where a word would belong to several of those, or where one field has all words.
func (f *Format) orderWords() map[string]wordOrder {
	reads := f.wordReads()
	if len(reads) < 2 {
		return nil
	}
	fields := slices.DeleteFunc(slices.Clone(f.Fields), func(fd Field) bool { return reads[fd.Name] == nil })
	fewest := slices.MinFunc(fields, func(a, b Field) int { return a.Count - b.Count })
	groups := make(map[string][]int64) // of each word
	for _, fd := range fields {
		groups[fd.Name] = slices.Repeat([]int64{-1}, fd.Count/recordWord)
		for k, word := range reads[fd.Name] {
			group := reads[fewest.Name][k]
			if was := groups[fd.Name][word]; was >= 0 && was != group {
				return nil
			}
			groups[fd.Name][word] = group
		}
	}
	places := make(map[string][]int64)
	for _, fd := range fields {
		places[fd.Name] = make([]int64, fd.Count/recordWord)
	}
	at := int64(0)
	for group := range int64(fewest.Count / recordWord) {
		for _, fd := range fields {
			for word, of := range groups[fd.Name] {
				if of == group {
					places[fd.Name][word] = at
					at += RecordRows * recordWord
				}
			}
		}
	}
	if at != f.recordWordBytes() {
		return nil // a word that no weight reads
	}
	out := make(map[string]wordOrder)
	for name, list := range places {
		first := list[0]
		for i := range list {
			list[i] -= first
		}
		digits, ok := digitsOf(list)
		if !ok {
			return nil
		}
		out[name] = wordOrder{first, digits}
	}
	return out
}

// wordReads lists, for each field of words, the word that each weight of a block reads.
func (f *Format) wordReads() map[string][]int64 {
	out := make(map[string][]int64)
	for _, u := range f.decoded() {
		if u.Op != ir.OpField {
			continue
		}
		if fd, _ := f.Field(u.Arg.(ir.FieldArg).Field); fd.recordRun(f) == recordWord {
			words := make([]int64, f.BlockElems)
			for k := range words {
				words[k] = indexAt(u.Src[3], int64(k)) / recordWord
			}
			out[fd.Name] = words
		}
	}
	return out
}

// recordWordBytes is what the words of weights take of a record.
func (f *Format) recordWordBytes() (bytes int64) {
	for i := range f.Fields {
		if fd := &f.Fields[i]; fd.recordRun(f) == recordWord {
			bytes += int64(fd.Bytes()) * RecordRows
		}
	}
	return bytes
}

// RecordSpan is how many bytes of a record are read as one stream with a field, and whether they hold weights: all
// words of weights, or the field alone.
func (f *Format) RecordSpan(fd *Field) (bytes int64, weights bool) {
	if fd.recordRun(f) == recordWord {
		return f.recordWordBytes(), true
	}
	return int64(fd.Bytes()) * RecordRows, false
}
