package search

import (
	"fmt"
	"math"
	"slices"
)

// Tree is a regression tree: nodes in a list, the first is the root.
type Tree []TreeNode

// TreeNode asks whether a feature is less than a bound, or, with no feature, is an answer.
type TreeNode struct {
	Feature int     `json:"feature"` // -1: Value is the answer
	Below   float64 `json:"below,omitempty"`
	Yes     int     `json:"yes,omitempty"` // nodes after this one
	No      int     `json:"no,omitempty"`
	Value   float64 `json:"value,omitempty"`
}

// answer of a tree.
func (t Tree) answer(f *Features) float64 {
	at := 0
	for t[at].Feature >= 0 {
		if f[t[at].Feature] < t[at].Below {
			at = t[at].Yes
		} else {
			at = t[at].No
		}
	}
	return t[at].Value
}

// check refuses a tree that does not end.
func (t Tree) check() error {
	if len(t) == 0 || len(t) > mostNodes {
		return fmt.Errorf("a tree of %d nodes, want 1 to %d", len(t), mostNodes)
	}
	for i, n := range t {
		inner := n.Feature >= 0 && n.Feature < numFeatures && n.Yes > i && n.No > i && n.Yes < len(t) && n.No < len(t)
		if n.Feature != -1 && !inner {
			return fmt.Errorf("node %d of a tree: %+v", i, n)
		}
	}
	return nil
}

// How trees are grown: each a little of what those before have left (Friedman, Greedy Function
// Approximation, 2001).
const (
	treeCount  = 300
	treeDepth  = 4
	treeRate   = 0.07
	treeLeast  = 25 // rows of an answer
	treeBounds = 32 // that are tried of a feature
	mostNodes  = 1 << 10
	mostTrees  = 1 << 12
)

// grower grows trees on rows.
type grower struct {
	rows   []Features
	rest   []float64 // of the targets
	weight []float64
	bounds [numFeatures][]float64
	bins   [][numFeatures]uint8 // of each row: bounds that are not more than its feature
}

// growTrees fits trees to targets; weights say how much rows count.
func growTrees(rows []Features, targets, weights []float64) (trees []Tree) {
	g := &grower{rows: rows, rest: slices.Clone(targets), weight: weights}
	g.bin()
	all := make([]int, len(rows))
	for i := range all {
		all[i] = i
	}
	for range treeCount {
		var t Tree
		g.node(&t, all, treeDepth)
		for i := range rows {
			g.rest[i] -= t.answer(&rows[i])
		}
		trees = append(trees, t)
	}
	return trees
}

// bin sorts features into as many parts as there are bounds.
func (g *grower) bin() {
	g.bins = make([][numFeatures]uint8, len(g.rows))
	for f := range numFeatures {
		values := make([]float64, len(g.rows))
		for i := range g.rows {
			values[i] = g.rows[i][f]
		}
		slices.Sort(values)
		for k := 1; k < treeBounds && len(values) > 0; k++ {
			if v := values[k*len(values)/treeBounds]; v > values[0] && (len(g.bounds[f]) == 0 || v > g.bounds[f][len(g.bounds[f])-1]) {
				g.bounds[f] = append(g.bounds[f], v)
			}
		}
		for i := range g.rows {
			n, found := slices.BinarySearch(g.bounds[f], g.rows[i][f])
			if found {
				n++
			}
			g.bins[i][f] = uint8(n)
		}
	}
}

// sums of rows.
type sums struct {
	weight, total float64
	n             int
}

func (s *sums) add(o sums) { s.weight, s.total, s.n = s.weight+o.weight, s.total+o.total, s.n+o.n }

// gain is what an answer of its own takes off the squares.
func (s sums) gain() float64 {
	if s.weight == 0 {
		return 0
	}
	return s.total * s.total / s.weight
}

// node adds a node for some rows, and those below it.
func (g *grower) node(t *Tree, rows []int, depth int) {
	at := len(*t)
	var all sums
	for _, i := range rows {
		all.add(sums{g.weight[i], g.weight[i] * g.rest[i], 1})
	}
	*t = append(*t, TreeNode{Feature: -1, Value: treeRate * all.total / math.Max(all.weight, 1e-12)})
	if depth == 0 {
		return
	}
	feature, bound := g.split(rows, all)
	if feature < 0 {
		return
	}
	var yes, no []int
	for _, i := range rows {
		if int(g.bins[i][feature]) <= bound {
			yes = append(yes, i)
		} else {
			no = append(no, i)
		}
	}
	n := TreeNode{Feature: feature, Below: g.bounds[feature][bound], Yes: len(*t)}
	g.node(t, yes, depth-1)
	n.No = len(*t)
	g.node(t, no, depth-1)
	(*t)[at] = n
}

// split finds the question that says most of some rows; -1: none.
func (g *grower) split(rows []int, all sums) (feature, bound int) {
	feature, most := -1, all.gain()*(1+1e-9)+1e-12
	for f := range numFeatures {
		var parts [treeBounds + 1]sums
		for _, i := range rows {
			p := &parts[g.bins[i][f]]
			p.weight, p.total, p.n = p.weight+g.weight[i], p.total+g.weight[i]*g.rest[i], p.n+1
		}
		var below sums
		for b := range g.bounds[f] {
			below.add(parts[b])
			above := sums{all.weight - below.weight, all.total - below.total, all.n - below.n}
			if below.n < treeLeast || above.n < treeLeast {
				continue
			}
			if gain := below.gain() + above.gain(); gain > most {
				feature, bound, most = f, b, gain
			}
		}
	}
	return feature, bound
}
