// Spectrum finds the frequency of a wave.
package main

import (
	"fmt"
	"math"

	"tgc/ir"
	"tgc/tensor"
)

func main() {
	t := tensor.NewGraph().Arange(ir.F32, 0, 64, 1)
	c := t.MulScalar(2 * math.Pi * 5 / 64).Sin().RFFT(0)
	fmt.Println(tensor.Data[int32](c.Real.Square().Add(c.Imag.Square()).Argmax(0)))
}

// Output:
// [5] <nil>
