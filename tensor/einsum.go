package tensor

import (
	"slices"
	"strings"

	"tgc/internal/lists"
)

// Einsum is a sum of products in Einstein's notation: "ij,jk->ik". Letters name
// axes, "..." the axes that are broadcast together and come first unless the
// result says where; a letter that repeats in one operand takes its diagonal.
// Without "->", the result has the letters that occur once, in alphabetical
// order. Operands are joined from left to right; an axis is summed as soon as
// no later operand and not the result names it. Halves are summed in f32.
func Einsum(equation string, operands ...*Tensor) *Tensor {
	if len(operands) == 0 {
		return &Tensor{graph: NewGraph()}
	}
	g := operands[0].graph
	for _, t := range operands {
		if !t.ok() {
			return operands[0].bad()
		}
	}
	inputs, output, problem := parseEinsum(equation, operands)
	if problem != "" {
		return g.fail("einsum", "%q: %s", equation, problem)
	}
	dtype := operands[0].DType()
	acc := labelled{operands[0].wide(), inputs[0]}.diagonals()
	for i, t := range operands[1:] {
		if t.DType() != dtype {
			return g.fail("einsum", "%q: dtypes differ: %s and %s", equation, operands[0], t)
		}
		next := labelled{t.wide(), inputs[i+1]}.diagonals()
		later := slices.Concat(append(inputs[i+2:len(inputs):len(inputs)], output)...)
		if acc = acc.times(next, later); !acc.ok() {
			return g.fail("einsum", "%q: %s and %s do not broadcast", equation, acc.Tensor, t)
		}
	}
	return acc.only(output).Cast(dtype)
}

// parseEinsum gives the labels of each operand's axes and of the result's.
// Letters are their code points; the axes of "..." are negative, counted from
// the last one, -1.
func parseEinsum(equation string, operands []*Tensor) (inputs [][]int, output []int, problem string) {
	left, right, explicit := strings.Cut(strings.ReplaceAll(equation, " ", ""), "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(operands) {
		return nil, nil, "the number of operands differs"
	}
	count, dots := make(map[int]int), 0
	for i, term := range terms {
		rank := operands[i].Rank()
		labels, ok := axisLabels(term, rank-len(strings.Replace(term, "...", "", 1)))
		if !ok || len(labels) != rank {
			return nil, nil, "term " + term + " does not fit " + operands[i].String()
		}
		inputs = append(inputs, labels)
		for _, label := range labels {
			count[label]++
			dots = max(dots, -label)
		}
	}
	if explicit {
		output, ok := axisLabels(right, dots)
		for i, label := range output {
			if count[label] == 0 || slices.Contains(output[:i], label) {
				ok = false
			}
		}
		if !ok {
			return nil, nil, "the result " + right + " does not fit the operands"
		}
		return inputs, output, ""
	}
	for label, n := range count {
		if label < 0 || n == 1 {
			output = append(output, label)
		}
	}
	slices.Sort(output)
	return inputs, output, ""
}

// axisLabels reads one term, with dots axes for its "...".
func axisLabels(term string, dots int) (labels []int, ok bool) {
	before, after, has := strings.Cut(term, "...")
	for _, c := range before + after {
		if c < 'A' || c > 'z' || c > 'Z' && c < 'a' {
			return nil, false
		}
		labels = append(labels, int(c))
	}
	if !has {
		return labels, true
	}
	if dots < 0 {
		return nil, false
	}
	var some []int
	for k := -dots; k < 0; k++ {
		some = append(some, k)
	}
	return slices.Insert(labels, len(before), some...), true
}

// labelled is a tensor whose axes have labels.
type labelled struct {
	*Tensor
	labels []int
}

// diagonals joins axes of one label.
func (l labelled) diagonals() labelled {
	for {
		i, j := l.repeated()
		if j < 0 || !l.ok() {
			return l
		}
		label := l.labels[i]
		if l.Extent(i) != l.Extent(j) {
			return labelled{l.graph.fail("einsum", "%s has one letter for axes %d and %d", l.Tensor, i, j), nil}
		}
		rest := slices.Delete(slices.Delete(slices.Clone(l.labels), j, j+1), i, i+1)
		l = labelled{l.Diagonal(0, i, j), append(rest, label)}
	}
}

// repeated finds two axes of one label; j is -1 when there are none.
func (l labelled) repeated() (i, j int) {
	for j, label := range l.labels {
		if i := slices.Index(l.labels, label); i < j {
			return i, j
		}
	}
	return 0, -1
}

// times multiplies, and sums over the labels that later does not name.
func (l labelled) times(m labelled, later []int) labelled {
	all := lists.Union(slices.Clone(l.labels), m.labels...)
	product := labelled{l.spread(all).Mul(m.spread(all)), all}
	return product.sumAllBut(later)
}

// spread puts the axes in the order of all, with extent 1 where l has none.
func (l labelled) spread(all []int) *Tensor {
	var order []int
	t := l.Tensor
	for _, label := range all {
		if k := slices.Index(l.labels, label); k >= 0 {
			order = append(order, k)
		}
	}
	t = t.Permute(order...)
	for k, label := range all {
		if !slices.Contains(l.labels, label) {
			t = t.Unsqueeze(k)
		}
	}
	return t
}

// sumAllBut sums over the axes whose labels are not kept.
func (l labelled) sumAllBut(keep []int) labelled {
	var axes, rest []int
	for k, label := range l.labels {
		if slices.Contains(keep, label) {
			rest = append(rest, label)
		} else {
			axes = append(axes, k)
		}
	}
	if len(axes) == 0 {
		return l
	}
	return labelled{l.Sum(axes...), rest}
}

// only sums over what the result does not name and orders its axes.
func (l labelled) only(output []int) *Tensor {
	l = l.sumAllBut(output)
	axes := lists.Map(output, func(label int) int { return slices.Index(l.labels, label) })
	return l.Permute(axes...)
}
