package gguf

import (
	"context"
	"testing"
)

// FuzzOpen opens arbitrary bytes: an error or a File all of whose parts can be
// read. The seeds hold every value type.
func FuzzOpen(f *testing.F) {
	w := NewWriter()
	putAllTypes(w)
	w.Add("a", F32, []int{3, 2}, FromBytes(make([]byte, 24)))
	w.Add("b", Q8_0, []int{32}, FromBytes(make([]byte, 34)))
	whole, err := w.Bytes(context.Background())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := OpenBytes("fuzz.gguf", data)
		if err != nil {
			checkMessage(t, "fuzz", err)
			return
		}
		readAll(t, file)
	})
}
