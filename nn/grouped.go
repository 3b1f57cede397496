package nn

import (
	"tgc/ir"
	"tgc/target"
	"tgc/tensor"
)

// grouping orders the rows of many tokens by the expert they go to, in tiles of
// one expert each: a tile's product is one with one matrix, whose weights are read
// and decoded once for all of its rows. A group ends with rows that nothing reads,
// so that the next one starts with a tile.
type grouping struct {
	expert *tensor.Tensor // [tiles]: whose rows a tile has, -1 where it has none
	token  *tensor.Tensor // [tiles rows]: whose activations a row has
	used   *tensor.Tensor // [tiles rows]: 1 where a row has a token, 0 where it has none
	place  *tensor.Tensor // [tokens used]: the row of each choice of a token
}

// group counts instead of sorting: a choice comes after those of all experts before
// its own, in whole tiles, and after the earlier choices of its expert. chosen is
// [tokens used].
func group(chosen *tensor.Tensor, experts, rows int) grouping {
	g := chosen.Graph()
	tokens, used := chosen.Extent(0), chosen.Extent(1)
	choices, tiles := tokens*used, (tokens*used+experts*(rows-1))/rows
	number := func(n int) *tensor.Tensor { return g.Scalar(ir.I32, float64(n)) }
	iota := func(n int) *tensor.Tensor { return g.Iota(ir.I32, g.Dims(n)[0]) }
	each := func(t *tensor.Tensor) *tensor.Tensor { return t.Unsqueeze(1) }
	count := func(condition *tensor.Tensor) *tensor.Tensor { return condition.Where(number(1), number(0)).Sum(1) }

	flat := chosen.Flatten(0, 1)
	before := iota(choices).Lt(each(iota(choices)))
	within := count(flat.Eq(each(flat)).And(before)) // [choices]
	tilesOf := count(flat.Eq(each(iota(experts)))).AddScalar(float64(rows - 1)).FloorDiv(number(rows))
	first := iota(experts).Lt(each(flat)).Where(tilesOf, number(0)).Sum(1).MulScalar(float64(rows))
	place := first.Add(within)
	inRow, inTile := place.Eq(each(iota(tiles*rows))), place.FloorDiv(number(rows)).Eq(each(iota(tiles)))
	return grouping{
		expert: inTile.Where(flat, number(-1)).Max(1),
		token:  inRow.Where(iota(choices).FloorDiv(number(used)), number(0)).Sum(1).Unflatten(0, tiles, rows),
		used:   inRow.Where(number(1), number(0)).Sum(1).Unflatten(0, tiles, rows),
		place:  place.Unflatten(0, tokens, used),
	}
}

// grouped is Apply for many tokens x [tokens D] on a target.
func (e Experts) grouped(x *tensor.Tensor, to grouping, weight *tensor.Tensor, desc *target.Desc) *tensor.Tensor {
	rows := int64(to.token.Extent(1))
	activations := func(v, w *tensor.Tensor) *tensor.Tensor {
		if e.Numeric.asHalves(w, rows, desc) {
			return toBF16(v)
		}
		return e.Numeric.activations(v, w)
	}
	product := func(w, bias, v *tensor.Tensor) *tensor.Tensor { // [tiles rows K] -> [tiles rows N]
		if e.Numeric.asHalves(w, rows, desc) {
			w = toBF16(w)
		}
		out := v.Unsqueeze(2).Mul(w.Gather(0, to.expert).Unsqueeze(1)).Sum(-1)
		if bias != nil {
			out = out.Add(bias.Gather(0, to.expert).Unsqueeze(1))
		}
		return out
	}
	in := func(w *tensor.Tensor) *tensor.Tensor { return activations(x, w).Gather(0, to.token) }
	nothing := x.Graph().Scalar(ir.F32, 0)
	atLeast := func(t *tensor.Tensor, least float64) *tensor.Tensor { return t.Ge(x.Graph().Scalar(ir.I32, least)) }
	filled := func(t *tensor.Tensor) *tensor.Tensor { // without loops elsewhere
		if desc.Tuning.SkipRows { // loops end that would be for rows without a token alone
			t = atLeast(to.used, 1).Unsqueeze(2).Where(t, nothing)
		}
		return atLeast(to.expert, 0).Unsqueeze(1).Unsqueeze(2).Where(t, nothing)
	}
	hidden := filled(e.hidden(product(e.Gate, e.GateBias, in(e.Gate)), product(e.Up, e.UpBias, in(e.Up))))
	out := filled(product(e.Down, e.DownBias, activations(hidden, e.Down))) // [tiles rows D]
	return out.Flatten(0, 1).Gather(0, to.place).Mul(weight.Unsqueeze(-1)).Sum(1)
}
