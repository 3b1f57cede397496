package viz

import "slices"

// hunk is a place where two texts differ: at in the first, where so many lines are gone and
// others are made.
type hunk struct {
	at, gone int
	made     []int32
}

// differ lists the hunks between two texts, given as numbers of lines: what is equal at both
// ends, then around lines that are there once in each (patience), which is fast and keeps
// together what a reader takes as one.
func differ(before, after []int32) []hunk {
	d := differing{before: before, after: after}
	d.between(0, len(before), 0, len(after))
	return d.hunks
}

type differing struct {
	before, after []int32
	hunks         []hunk
}

func (d *differing) between(i, iEnd, j, jEnd int) {
	for i < iEnd && j < jEnd && d.before[i] == d.after[j] {
		i, j = i+1, j+1
	}
	for i < iEnd && j < jEnd && d.before[iEnd-1] == d.after[jEnd-1] {
		iEnd, jEnd = iEnd-1, jEnd-1
	}
	if i == iEnd && j == jEnd {
		return
	}
	anchors := d.anchors(i, iEnd, j, jEnd)
	if len(anchors) == 0 {
		d.hunks = append(d.hunks, hunk{i, iEnd - i, d.after[j:jEnd]})
		return
	}
	for _, a := range anchors {
		d.between(i, a[0], j, a[1])
		i, j = a[0]+1, a[1]+1
	}
	d.between(i, iEnd, j, jEnd)
}

// anchors are the places of a longest rising sequence of lines that are once in each part.
func (d *differing) anchors(i, iEnd, j, jEnd int) (chosen [][2]int) {
	const twice = -1
	places := make(map[int32]int)
	for k := i; k < iEnd; k++ {
		if _, there := places[d.before[k]]; there {
			places[d.before[k]] = twice
		} else {
			places[d.before[k]] = k
		}
	}
	count := make(map[int32]int)
	for k := j; k < jEnd; k++ {
		count[d.after[k]]++
	}
	var pairs [][2]int // in the order of after
	for k := j; k < jEnd; k++ {
		if at, there := places[d.after[k]]; there && at != twice && count[d.after[k]] == 1 {
			pairs = append(pairs, [2]int{at, k})
		}
	}
	return risingPairs(pairs)
}

// risingPairs is a longest subsequence whose first numbers rise.
func risingPairs(pairs [][2]int) (chosen [][2]int) {
	var tails []int // by length-1: the pair with the least first number that ends such a sequence
	previous := make([]int, len(pairs))
	for k, p := range pairs {
		n, _ := slices.BinarySearchFunc(tails, p[0], func(t, first int) int { return pairs[t][0] - first })
		previous[k] = none
		if n > 0 {
			previous[k] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, k)
		} else {
			tails[n] = k
		}
	}
	if len(tails) == 0 {
		return nil
	}
	for k := tails[len(tails)-1]; k != none; k = previous[k] {
		chosen = append(chosen, pairs[k])
	}
	slices.Reverse(chosen)
	return chosen
}
