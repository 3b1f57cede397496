package gguf_test

import (
	"context"
	"fmt"

	"tgc/gguf"
)

// A file is written from metadata and tensors, and read without touching tensor data.
func Example() {
	w := gguf.NewWriter()
	w.Put("general.architecture", "example")
	w.Add("weight", gguf.F32, []int{2, 1}, gguf.FromBytes([]byte{0, 0, 128, 63, 0, 0, 0, 64})) // 1 and 2
	f, err := w.Memory(context.Background(), "example.gguf", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	name, err := f.String("general.architecture")
	t, found := f.Tensor("weight")
	fmt.Println(name, err, t.Type, t.Shape(), t.Bytes(), found)
	_, err = f.Int("block_count")
	fmt.Println(err)
	// Output:
	// example <nil> F32 [2] 8 true
	// gguf: example.gguf: key "block_count": missing
}
