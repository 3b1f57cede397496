package tensor_test

import "tgc/tensor"

// searchOps are the rows of the group newer whose results are found by values.
var searchOps = map[string]opBuilder{
	"unique": attributedMany(func(a *attrs, x *tensor.Tensor) []*tensor.Tensor {
		d := x.Unique(a.integer("size"))
		return []*tensor.Tensor{d.Values, d.Inverse, d.Counts, d.Count}
	}),
	"nonzero": attributedMany(func(a *attrs, x *tensor.Tensor) []*tensor.Tensor {
		at, count := x.Nonzero(a.integer("size"))
		return []*tensor.Tensor{at, count}
	}),
	"masked_select": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		values, count := in[0].MaskedSelect(in[1], a.integer("size"))
		return []*tensor.Tensor{values, count}
	},
	"bincount": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Bincount(a.integer("bins")) }),
	"searchsorted": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].SearchSorted(in[1], attrOr(a, "right", false)))
	},
	"quantile": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Quantile(a.float("q"), a.integer("axis")) }),
	"median":   attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Median(a.integer("axis")) }),
}

func attributedMany(method func(a *attrs, x *tensor.Tensor) []*tensor.Tensor) opBuilder {
	return func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor { return method(a, in[0]) }
}
