// Types converts numbers to narrow formats and back.
package main

import (
	"fmt"

	"tgc/ir"
	"tgc/tensor"
)

func main() {
	x := tensor.FromSlice(tensor.NewGraph(), []float32{1.0 / 3, 1000, -7.3}, 3)
	for _, dtype := range []ir.DType{ir.BF16, ir.F16, ir.F8E4M3, ir.F8E5M2, ir.I8} {
		values, err := tensor.Data[float32](x.Cast(dtype).Cast(ir.F32))
		fmt.Println(dtype, values, err)
	}
}

// Output:
// bf16 [0.33398438 1000 -7.3125] <nil>
// f16 [0.33325195 1000 -7.3007812] <nil>
// f8e4m3 [0.34375 NaN -7.5] <nil>
// f8e5m2 [0.3125 1024 -7] <nil>
// i8 [0 127 -7] <nil>
