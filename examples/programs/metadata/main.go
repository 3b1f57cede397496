// Metadata writes a GGUF file and reads it.
package main

import (
	"context"
	"fmt"
	"log"

	"tgc/gguf"
)

func main() {
	w := gguf.NewWriter()
	w.Put("general.architecture", "example")
	w.Add("weight", gguf.F32, []int{2, 1}, gguf.FromBytes([]byte{0, 0, 128, 63, 0, 0, 0, 64}))
	f, err := w.Memory(context.Background(), "example.gguf", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	name, err := f.String("general.architecture")
	t, _ := f.Tensor("weight")
	fmt.Println(name, err, t.Type, t.Shape())
	_, err = f.Int("block_count")
	fmt.Println(err)
}

// Output:
// example <nil> F32 [2]
// gguf: example.gguf: key "block_count": missing
