package rewrite

// Sets lists every rule set of this package in the order in which Simplify
// tries them at a node.
//
// fold stands first, so that later rules never see an op of constants; order
// stands before the tables, because they expect constants second; index/cast
// comes before int, because a shift or mask cannot go back to an index.
func Sets() []*Set {
	return []*Set{foldSet, orderSet, whereSet, indexCast, indexSum, indexDiv, indexCompare, castSet, intSet, bitSet, floatSet}
}
