package main

import (
	"tgc/ir"
	"tgc/packed"
)

// hostBytes is the size of a buffer in the file's order.
func hostBytes(bytes int64, format string, shape []*ir.UOp) (int64, error) {
	f, ok := packed.Lookup(format)
	if !ok || f.IsPlain() {
		return bytes, nil
	}
	elements := int64(1)
	for _, n := range shape {
		v, _ := n.Int()
		elements *= v
	}
	return f.RowBytes(elements)
}
