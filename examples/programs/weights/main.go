// Weights writes a safetensors file and computes with what is in it.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"tgc/ir"
	"tgc/safetensors"
	"tgc/tensor"
)

func main() {
	var file bytes.Buffer
	weight := safetensors.Tensor{Name: "weight", DType: safetensors.BF16, Shape: []int{2, 2}, Data: []byte{0x80, 0x3f, 0, 0x40, 0x40, 0x40, 0x80, 0x40}}
	if err := safetensors.Write(context.Background(), &file, []safetensors.Tensor{weight}, nil); err != nil {
		log.Fatal(err)
	}
	f, err := safetensors.OpenBytes("weights.safetensors", file.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	g := tensor.NewGraph()
	t, _ := f.Tensor("weight")
	w := g.FromBytes(ir.BF16, t.Data, t.Shape...).Cast(ir.F32)
	fmt.Println(tensor.Data[float32](g.Ones(ir.F32, 1, 2).Linear(w)))
}

// Output:
// [3 7] <nil>
