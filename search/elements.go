package search

import (
	"bytes"
	"encoding/binary"
	"math"
	goruntime "runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"tgc/ir"
)

// Results of a prompt have millions of elements, which every candidate's are compared with:
// element by element that took longer than all else that is done with one.

// elementsAtOnce are compared by one goroutine.
const elementsAtOnce = 1 << 16

// numberOf reads elements of a type as numbers.
func numberOf(dtype ir.DType) func(data []byte, at int64) float64 {
	if dtype == ir.F32 {
		return func(data []byte, at int64) float64 {
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*at:])))
		}
	}
	return func(data []byte, at int64) float64 {
		return number(ir.DecodeTable(dtype, string(element(data, dtype, at)), 0))
	}
}

// apart lists the elements of two results that differ by more than a bound, in order: all of them
// where they are no more than so many, else more than that.
func apart(got, want []byte, dtype ir.DType, bound float64, most int) []int64 {
	elements := int64(len(want) / dtype.Size())
	parts := make([][]int64, (elements+elementsAtOnce-1)/elementsAtOnce)
	read := numberOf(dtype)
	var group errgroup.Group
	group.SetLimit(goruntime.GOMAXPROCS(0))
	for i := range parts {
		group.Go(func() error {
			first := int64(i) * elementsAtOnce
			last := min(first+elementsAtOnce, elements)
			if n := int64(dtype.Size()); bytes.Equal(got[first*n:last*n], want[first*n:last*n]) {
				return nil
			}
			for at := first; at < last && len(parts[i]) <= most; at++ {
				if !within(read(got, at), read(want, at), bound, dtype) {
					parts[i] = append(parts[i], at)
				}
			}
			return nil
		})
	}
	_ = group.Wait() // none fails
	return slices.Concat(parts...)
}
