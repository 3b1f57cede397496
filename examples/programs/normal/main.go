// Normal draws the same numbers each time and looks at their mean and spread.
package main

import (
	"fmt"
	"math"

	"tgc/tensor"
)

func main() {
	x := tensor.NewGraph().Random(7).Normal(3, 2, 100, 1000)
	moments, err := tensor.Data[float32](x.Mean().Unsqueeze(0).Cat(0, x.Std(1).Unsqueeze(0)))
	fmt.Println(math.Abs(float64(moments[0])-3) < 0.03, math.Abs(float64(moments[1])-2) < 0.03, err)
}

// Output:
// true true <nil>
