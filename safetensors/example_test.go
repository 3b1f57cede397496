package safetensors_test

import (
	"bytes"
	"context"
	"fmt"

	"tgc/safetensors"
)

func Example() {
	var file bytes.Buffer
	weight := safetensors.Tensor{Name: "weight", DType: "U8", Shape: []int{2, 2}, Data: []byte{1, 2, 3, 4}}
	if err := safetensors.Write(context.Background(), &file, []safetensors.Tensor{weight}, nil); err != nil {
		fmt.Println(err)
		return
	}
	f, err := safetensors.OpenBytes("example.safetensors", file.Bytes())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	t, found := f.Tensor("weight")
	fmt.Println(t.DType, t.Shape, t.Data, found)
	// Output: U8 [2 2] [1 2 3 4] true
}
