package tensor_test

import "tgc/tensor"

// indexOps are the rows of the group index.
var indexOps = map[string]opBuilder{
	"gather": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].GatherElements(a.integer("axis"), in[1]))
	},
	"take_along": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].TakeAlong(a.integer("axis"), in[1]))
	},
	"scatter": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].ScatterElements(a.integer("axis"), in[1], in[2]))
	},
	"scatter_add": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].ScatterElementsAdd(a.integer("axis"), in[1], in[2]))
	},
	"scatter_reduce": scatterReduceVector,
	"index_select": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].Gather(a.integer("axis"), in[1]))
	},
	"index_add": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].IndexAdd(a.integer("axis"), in[1], in[2]))
	},
	"index_nd": func(_ *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].GatherND(in[1:]...))
	},
	"embedding": func(_ *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[1].Gather(0, in[0]))
	},
	"masked_fill": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].MaskedFill(in[1], a.float("value")))
	},
	"one_hot": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		return x.OneHot(a.integer("classes"), a.dtypeOr("dtype", x.DType()))
	}),
	"sort": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		values, indices := in[0].Sort(a.integer("axis"), attrOr(a, "descending", false))
		return []*tensor.Tensor{values, indices}
	},
	"argsort": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		return x.Argsort(a.integer("axis"), attrOr(a, "descending", false))
	}),
	"topk": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		values, indices := in[0].TopK(a.integer("k"), a.integer("axis"), attrOr(a, "largest", true))
		return []*tensor.Tensor{values, indices}
	},
}

func scatterReduceVector(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
	name := attr[string](a, "reduce")
	reduce := tensor.ScatterSum
	for reduce.String() != name && reduce < tensor.ScatterMin {
		reduce++
	}
	if reduce.String() != name {
		a.lacks("reduce", name)
	}
	return one(in[0].ScatterElementsReduce(a.integer("axis"), in[1], in[2], reduce, attrOr(a, "include_self", true)))
}
