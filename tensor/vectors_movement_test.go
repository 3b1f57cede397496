package tensor_test

import "tgc/tensor"

// movementOps are the rows of the group movement.
var movementOps = map[string]opBuilder{
	"reshape": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Reshape(a.integers("shape")...) }),
	"permute": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Permute(a.integers("axes")...) }),
	"transpose": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		return x.Transpose(a.integer("axis0"), a.integer("axis1"))
	}),
	"expand": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Expand(a.integers("shape")...) }),
	"pad":    attributed(padVector),
	"shrink": attributed(shrinkVector),
	"slice":  attributed(sliceVector),
	"flip":   attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Flip(a.integers("axes")...) }),
	"stack": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].Stack(a.integer("axis"), in[1:]...))
	},
	"cat": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].Cat(a.integer("axis"), in[1:]...))
	},
	"split": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return in[0].Split(a.integer("axis"), a.integers("sizes")...)
	},
	"chunk": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return in[0].Chunk(a.integer("axis"), a.integer("chunks"))
	},
	"squeeze": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		if axis := attrOr(a, "axis", 0); a.has("axis") {
			return x.Squeeze(axis)
		}
		return x.Squeeze()
	}),
	"unsqueeze": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Unsqueeze(a.integer("axis")) }),
	"flatten": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		return x.Flatten(a.integer("start"), a.integer("end"))
	}),
	"unflatten": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		return x.Unflatten(a.integer("axis"), a.integers("sizes")...)
	}),
	"repeat": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Repeat(a.integers("repeats")...) }),
	"tile":   attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Repeat(a.integers("reps")...) }),
	"repeat_interleave": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		return x.RepeatInterleave(a.integer("axis"), a.integer("repeats"))
	}),
	"roll": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		return x.Roll(a.integers("shifts"), a.integers("axes"))
	}),
	"tril": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Tril(a.integer("k")) }),
	"triu": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Triu(a.integer("k")) }),
	"diagonal": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		return x.Diagonal(a.integer("offset"), a.integer("axis0"), a.integer("axis1"))
	}),
	"diag": unary((*tensor.Tensor).Diag),
	"unfold": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		return x.Unfold(a.integer("axis"), a.integer("size"), a.integer("step"))
	}),
}

var padModes = map[string]tensor.PadMode{
	"constant": tensor.PadConstant, "reflect": tensor.PadReflect,
	"replicate": tensor.PadReplicate, "circular": tensor.PadCircular,
}

func padVector(a *attrs, x *tensor.Tensor) *tensor.Tensor {
	name := attrOr(a, "mode", "constant")
	mode, ok := padModes[name]
	if !ok {
		a.lacks("mode", name)
	}
	return x.PadAll(attr[[][2]int](a, "pads"), tensor.PadOptions{Mode: mode, Value: a.floatOr("value", 0)})
}

func shrinkVector(a *attrs, x *tensor.Tensor) *tensor.Tensor {
	for k, b := range attr[[][2]int](a, "bounds") {
		x = x.SliceInts(k, b[0], b[1]-b[0])
	}
	return x
}

func sliceVector(a *attrs, x *tensor.Tensor) *tensor.Tensor {
	var spans []tensor.Span
	for _, part := range attr[[][3]*int](a, "slices") {
		s := tensor.Whole()
		switch {
		case part[0] != nil && part[1] != nil:
			s = tensor.Between(*part[0], *part[1])
		case part[0] != nil:
			s = tensor.From(*part[0])
		case part[1] != nil:
			s = tensor.Until(*part[1])
		}
		if part[2] != nil {
			s = s.By(*part[2])
		}
		spans = append(spans, s)
	}
	return x.Cut(spans...)
}
