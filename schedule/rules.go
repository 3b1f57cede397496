package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Rule names one switchable rule.
type Rule uint8

// The rules, in the order in which they are tried within their phase.
const (
	SliceSplit    Rule = iota // R0s
	Forward                   // R0f
	OneHit                    // R1h
	Hoist                     // R2
	Distribute                // R2m
	GroupSplit                // R3
	Digits                    // R2d
	IntConstant               // R2c
	OffsetApart               // R2o
	IntegerSum                // R3i
	GroupSum                  // R2g
	Cascade                   // R5
	Chan                      // CHAN
	JoinProj                  // R5p
	PointFusion               // R1p
	Inline                    // R1
	Broadcast                 // R4i
	TileEpilogue              // R6
	StagePrologue             // R6p
	Update                    // update
	Unify                     // R4
	MultiStore                // join
	Par                       // R7
	GridSplit                 // R8
	SumPieces                 // R8k
	NarrowStore               // narrow
	Flatten                   // flat
	numRules
)

// Class says what a rule does to float rounding.
type Class byte

// The rounding classes.
const (
	Exact       Class = 'X' // bit-exact
	Reassociate Class = 'A' // re-associates floats
	DropBits    Class = 'D' // drops precision
)

// RuleInfo is one row of the rule table.
type RuleInfo struct {
	Key   string // the rule's name in explain records and switches
	Class Class
	Doc   string
}

var ruleTable = [numRules]RuleInfo{
	SliceSplit:    {"R0s", Exact, "a value read only in disjoint boxes becomes one value per box"},
	Forward:       {"R0f", Exact, "a read of a version takes the stored value where it was stored"},
	OneHit:        {"R1h", Exact, "a fold whose terms are its identity unless an index equation holds becomes its one term"},
	Hoist:         {"R2", Reassociate, "sum_k c*f(k) -> c*sum_k f(k), looking through pointwise values"},
	Distribute:    {"R2m", Reassociate, "sum_k y*(t1+t2) -> sum_k y*t1 + sum_k y*t2 for packed terms with coarse factors"},
	GroupSplit:    {"R3", Reassociate, "a factor of k/g leaves the inner sum: k becomes nested digits"},
	Digits:        {"R2d", Reassociate, "sum_k (c*hi+lo)*q -> c*sum_k hi*q + sum_k lo*q for the digits of integer activations"},
	IntConstant:   {"R2c", Reassociate, "sum_k y*(q+c) -> sum_k y*q + c*sum_k y for packed integers q"},
	OffsetApart:   {"R2o", Reassociate, "sum_g s*sum_k y*(q+c): the offsets' sum leaves the groups, so that lanes stay open"},
	IntegerSum:    {"R3i", Reassociate, "a float sum of integers is an integer sum, converted once"},
	GroupSum:      {"R2g", Reassociate, "sums of integer activations alone become values: one a group, for all rows"},
	Cascade:       {"R5", Reassociate, "max, sum of exp and weighted sums become one tuple reduce (online softmax)"},
	Chan:          {"CHAN", Reassociate, "mean and sum of squared deviations become one tuple reduce"},
	JoinProj:      {"R5p", Exact, "arithmetic on projections joins values that hold the same tuple"},
	PointFusion:   {"R1p", Exact, "a value whose points are each read once moves into its readers"},
	Inline:        {"R1", Exact, "a cheap pointwise value is recomputed in its readers"},
	Broadcast:     {"R4i", Exact, "a light reduce is recomputed in every reader, one of a row joins the loop over the row"},
	TileEpilogue:  {"R6", Exact, "a reader of small tiles computes the tile itself"},
	StagePrologue: {"R6p", Exact, "a light value is staged in front of its readers"},
	Update:        {"update", Exact, "pointwise stores over equal loops, one of which reads at its own point what another stores, are one kernel"},
	Unify:         {"R4", Exact, "independent reduces of equal extent share one loop"},
	MultiStore:    {"join", Exact, "values that hold the same tuple or stage are stored by one kernel"},
	Par:           {"R7", Exact, "kernels of one dependence level start together; on a GPU they are one grid"},
	GridSplit:     {"R8", Reassociate, "a long reduce of a narrow kernel is cut into chunks; the same lambda combines them"},
	SumPieces:     {"R8k", Reassociate, "a long sum over columns side by side becomes a chain of sums over pieces of k"},
	NarrowStore:   {"narrow", Exact, "a value that ends in a widening conversion is stored before it"},
	Flatten:       {"flat", Exact, "neighbouring loops of a pointwise kernel that all its buffers have side by side become one"},
}

// OrderPair says that one rule is tried before another, and why.
type OrderPair struct {
	Before, After Rule
	Because       string
}

// orderPairs are the constraints that the tables of the phases obey; a test
// compares them.
var orderPairs = []OrderPair{
	{SliceSplit, Hoist, "a fused projection must fall apart before its parts get different treatment"},
	{Forward, Hoist, "the stored value's own factors can leave its readers' sums"},
	{OneHit, Hoist, "the one term may be a factor that leaves the sums around it"},
	{Distribute, GroupSplit, "a sum of two packed terms has no coarse factor, each term has"},
	{GroupSplit, IntConstant, "the distributed constant's sum is then one per group, the same for all rows"},
	{GroupSplit, Digits, "what stays in the innermost sum are digits and packed integers"},
	{Digits, IntConstant, "the sums of both digits have the offset"},
	{IntConstant, Hoist, "the constant must leave its sum; with look-through off, else a decode moves into every row"},
	{Hoist, IntegerSum, "a float constant or scale in the sum would keep it from being one of integers"},
	{Hoist, OffsetApart, "the constant must have left its sum"},
	{OffsetApart, IntegerSum, "a group whose offset stands inside is one integer"},
	{IntegerSum, GroupSum, "sums of integers are recognised by their type"},
	{Hoist, Cascade, "else the sum of a softmax stands inside its own tuple"},
	{Cascade, PointFusion, "the cascade needs maximum, exponentials and sums as values of their own"},
	{Cascade, Inline, "the cascade needs maximum, exponentials and sums as values of their own"},
	{Chan, PointFusion, "mean and squares must be values of their own"},
	{JoinProj, PointFusion, "inlining 1/l with a copy of its tuple would read the scores twice"},
	{PointFusion, Inline, "a bias goes into its producer's epilogue, not into the loop of the scores"},
	{Inline, Broadcast, "nothing is recomputed before what recomputes nothing was tried"},
	{Broadcast, TileEpilogue, "a head's sum must be in its reader before the tile is computed"},
	{TileEpilogue, StagePrologue, "an epilogue costs no second read, a prologue does"},
	{StagePrologue, GridSplit, "only when kernels exist is it known which are too narrow"},
	{StagePrologue, MultiStore, "what is still a value is stored"},
	{NarrowStore, Update, "a reader takes the expression as it is stored"},
	{GridSplit, SumPieces, "chunks are shorter sums"},
	{GridSplit, NarrowStore, "what is stored at all is settled"},
	{MultiStore, Flatten, "all stores of the kernel must have the loops"},
	{MultiStore, Unify, "the stores of one kernel share its loops"},
}

// OrderPairs lists the order constraints between rules.
func OrderPairs() []OrderPair { return slices.Clone(orderPairs) }

// Info returns the rule's row.
func (r Rule) Info() *RuleInfo { return &ruleTable[r] }

// String returns the rule's key.
func (r Rule) String() string { return ruleTable[r].Key }

// RuleSet is a set of rules.
type RuleSet uint32

// AllRules has every rule; NoRules gives R0 only: every value its own kernel.
const (
	NoRules  RuleSet = 0
	AllRules RuleSet = 1<<numRules - 1
)

// Has reports membership.
func (s RuleSet) Has(r Rule) bool { return s>>r&1 == 1 }

// With adds rules.
func (s RuleSet) With(rules ...Rule) RuleSet {
	for _, r := range rules {
		s |= 1 << r
	}
	return s
}

// Without removes rules.
func (s RuleSet) Without(rules ...Rule) RuleSet {
	for _, r := range rules {
		s &^= 1 << r
	}
	return s
}

// String lists the keys of the members.
func (s RuleSet) String() string {
	var keys []string
	for r := range numRules {
		if s.Has(r) {
			keys = append(keys, r.String())
		}
	}
	return strings.Join(keys, ",")
}

// ParseRules reads a comma-separated list of keys; a leading '-' on a key
// removes it from what stands before, "all" and "none" reset.
func ParseRules(text string, from RuleSet) (RuleSet, error) {
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		switch word {
		case "":
			continue
		case "all":
			from = AllRules
			continue
		case "none":
			from = NoRules
			continue
		}
		key, remove := strings.CutPrefix(word, "-")
		rule, ok := ruleByKey(key)
		if !ok {
			return 0, fmt.Errorf("schedule: unknown rule %q, want one of %s", key, AllRules)
		}
		if remove {
			from = from.Without(rule)
		} else {
			from = from.With(rule)
		}
	}
	return from, nil
}

func ruleByKey(key string) (Rule, bool) {
	for r := range numRules {
		if ruleTable[r].Key == key {
			return r, true
		}
	}
	return 0, false
}
