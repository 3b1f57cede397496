package schedule

import (
	"context"
	"slices"

	"tgc/pass"
	"tgc/schedule/algebra"
	"tgc/schedule/emit"
	"tgc/schedule/place"
	"tgc/schedule/rangeify"
	"tgc/schedule/state"
)

// What rows need and give.
const (
	hasValues  = "values over ranges"
	hasFactors = "scales outside of sums"
	isPlaced   = "every value that is left is stored"
	hasLevels  = "launches"
	hasNames   = "final names of loops"
	hasKernels = "kernels"
)

// rows are the passes of this stage, in order.
var rows = []row{
	{Info: pass.Info{Name: "sink-casts", From: pass.Tensor, To: pass.Tensor,
		Doc: "CAST(RESHAPE(fold)) -> RESHAPE(CAST(fold)): a conversion between floats moves to the fold whose positions are renamed",
		Why: "the conversion is what is stored: a store with the axes of the reshape has a loop nest for which no target has a plan"},
		class: Exact, run: rangeify.SinkCasts},
	{Info: pass.Info{Name: "rangeify", Key: "R0", From: pass.Tensor, To: pass.Values, Required: true, Gives: []string{hasValues},
		Doc: "cut the graph into values; movement ops become index expressions",
		Why: "the rules need index expressions, not movement ops"},
		run: rangeify.Rangeify},

	{Info: pass.Info{Name: "split-slices", Key: "R0s", Doc: "a value read only in disjoint boxes becomes one value per box",
		Why: "a fused projection of queries, keys and values would be stored as a whole for the sake of the part that is read often"},
		class: Exact, run: algebra.SplitSlices},
	{Info: pass.Info{Name: "forward-stores", Key: "R0f", Doc: "a read of a version takes the stored value where it was stored",
		Why: "attention can run in the launch that writes the new row of its cache"},
		class: Exact, run: algebra.ForwardStores},

	// The algebra: each row rewrites the body of every value once.
	{Info: pass.Info{Name: "eliminate-one-hot", Key: "R1h", Doc: "a fold whose terms are its identity unless an index equation holds becomes its one term",
		Why: "a scatter, a derivative of a lookup or a product with a one-hot matrix then needs no loop"},
		class: Exact, run: algebra.EachValue(algebra.EliminateOneHot)},
	{Info: pass.Info{Name: "hoist-factors", Key: "R2", Gives: []string{hasFactors}, Doc: "sum_k c*f(k) -> c*sum_k f(k), looking through pointwise values",
		Why: "a norm folds into the matrix product after it, and what stays in a sum is what differs from term to term"},
		class: Reassociate, run: algebra.EachValue(algebra.HoistFactors)},
	{Info: pass.Info{Name: "group-contractions", Key: "R3", Needs: []string{hasFactors},
		Doc: "sum_k y*(d*s*q - e*m) -> sum_b d*sum_g s*sum_j y*q - sum_b e*sum_g m*sum_j y: a sum for every level of scales; digits and offsets of integers have sums of their own",
		Why: "a scale is multiplied once a group instead of once an element, and what stays in the innermost sums are products of bytes"},
		class: Reassociate, run: algebra.EachValue(algebra.GroupContractions)},
	{Info: pass.Info{Name: "sum-integers", Key: "R3i", Doc: "a float sum of integers is an integer sum, converted once",
		Why: "products of bytes are summed by dot instructions and converted once"},
		class: Reassociate, run: algebra.EachValue(algebra.SumIntegers)},
	{Info: pass.Info{Name: "split-terms", Key: "R3t", Doc: "activations of a product that tile instructions sum are stored as tiles read them: bytes, or terms of bf16 whose sum they are",
		Why: "every row of weights would split the same activations again, and columns of a tile that lie apart meet in few sets of a cache"},
		class: Exact, run: algebra.EachValue(algebra.SplitTerms)},
	{Info: pass.Info{Name: "scale-terms", Key: "R3h", Doc: "activations of a product by matrix instructions are stored as two terms of f16, scaled by a power of two for each row",
		Why: "an f32 is three terms of bf16, each with an instruction of its own, and every block would split the same activations again"},
		class: DropBits, run: algebra.ScaleTerms},
	{Info: pass.Info{Name: "share-group-sums", Key: "R2g", Doc: "sums of integer activations alone become values: one a group, for all rows",
		Why: "every row would sum up the same activations again"},
		class: Reassociate, run: algebra.ShareGroupSums},
	{Info: pass.Info{Name: "store-offsets", Key: "R2o", Doc: "sums of offsets beside sums of scaled terms become values: products of matrices of their own",
		Why: "beside matrix instructions a multiply-add for each group and result takes as long as they do"},
		class: Reassociate, run: algebra.StoreOffsets},
	{Info: pass.Info{Name: "fuse-softmax", Key: "R5", Needs: []string{hasFactors}, Doc: "max, sum of exp and weighted sums become one tuple reduce (online softmax)",
		Why: "scores are computed and read once, not once each for maximum, sum and weighted sum"},
		class: Reassociate, run: algebra.EachReader(algebra.FuseSoftmax)},
	{Info: pass.Info{Name: "scale-scores", Key: "R5h", Needs: []string{hasFactors}, Doc: "both factors of the scores of many queries, and what their softmax weighs, are two terms of f16, scaled by powers of two",
		Why: "a product of two f32 is six of terms of bf16, and three of these"},
		class: DropBits, run: algebra.ScaleScores},
	{Info: pass.Info{Name: "fuse-moments", Key: "CHAN", Doc: "mean and sum of squared deviations become one tuple reduce",
		Why: "a row is read once for both"},
		class: Reassociate, run: algebra.EachReader(algebra.FuseMoments)},

	// Placement: which values vanish into their readers. See place.
	{Info: pass.Info{Name: "join-projections", Key: "R5p", Group: placement, Doc: "arithmetic on projections joins values that hold the same tuple",
		Why: "the tuple would be computed once for each of them"},
		class: Exact, try: place.JoinProjections},
	{Info: pass.Info{Name: "fuse-points", Key: "R1p", Group: placement, Doc: "a value whose points are each read once moves into its readers",
		Why: "an epilogue costs nothing: its operand needs no store, no load and no kernel"},
		class: Exact, try: place.FusePoints},
	{Info: pass.Info{Name: "inline-pointwise", Key: "R1", Group: placement, Doc: "a cheap pointwise value is recomputed in its readers",
		Why: "a few operations cost less than a store and a load"},
		class: Exact, try: place.InlinePointwise},
	{Info: pass.Info{Name: "broadcast-reduces", Key: "R4i", Group: placement, Doc: "a light reduce is recomputed in every reader, one of a row joins the loop over the row",
		Why: "a launch that makes one number costs more than the number does in every block"},
		class: Exact, try: place.BroadcastReduces},
	{Info: pass.Info{Name: "fuse-tile-epilogues", Key: "R6", Group: placement, Doc: "a reader of small tiles computes the tile itself",
		Why: "what pairs or heads of a projection go through next needs no kernel of its own"},
		class: Exact, try: place.FuseTileEpilogues},
	{Info: pass.Info{Name: "stage-prologues", Key: "R6p", Group: placement, Gives: []string{isPlaced}, Doc: "a light value is staged before its readers",
		Why: "a norm or a quantised row costs a block less than a launch of its own"},
		class: Exact, try: place.StagePrologues},

	{Info: pass.Info{Name: "split-grid", Key: "R8", Needs: []string{isPlaced}, Doc: "a long reduce of a narrow kernel is cut into chunks; the same lambda combines them",
		Why: "few blocks would leave most of a GPU idle: attention over a long cache has a block a head"},
		class: Reassociate, run: place.SplitGrid},
	{Info: pass.Info{Name: "place-parts", Needs: []string{isPlaced}, Doc: "the placement rules once more, if split-grid made parts",
		Why: "what combines the parts is light, and can be staged before its readers"},
		class: Exact, run: placeParts},
	{Info: pass.Info{Name: "split-sums", Key: "R8k", Needs: []string{isPlaced}, Doc: "a long sum over columns side by side becomes a chain of sums over pieces of k",
		Why: "of a long sum the panel of columns that all rows read would leave a core's cache"},
		class: Reassociate, run: place.SplitSums},
	{Info: pass.Info{Name: "store-narrow", Key: "narrow", Needs: []string{isPlaced}, Doc: "a value that ends in a widening conversion is stored before it",
		Why: "half the bytes move, and a reader sees that few bits suffice"},
		class: Exact, run: place.StoreNarrow},

	// Emission: values become kernels.
	{Info: pass.Info{Name: "fuse-updates", Key: "update", Needs: []string{isPlaced},
		Doc: "pointwise stores over equal loops, one of which reads at its own point what another stores, are one kernel",
		Why: "the step of an optimiser is one pass over the parameter, and nothing is read back"},
		class: Exact, run: emit.FuseUpdates},
	{Info: pass.Info{Name: "absorb-operands", Needs: []string{isPlaced},
		Doc: "a pointwise temporary moves into the update that is its only reader",
		Why: "the stores of a point share what they compute, so nothing is computed twice"},
		with: "fuse-updates", class: Exact, run: emit.AbsorbOperands},
	{Info: pass.Info{Name: "order-levels", Key: "R7", Needs: []string{isPlaced}, Gives: []string{hasLevels}, Required: true,
		Doc: "kernels of one dependence level start together; on a GPU they are one grid",
		Why: "what must run before what is settled only now"},
		with: state.OrderLevels, class: Exact, run: emit.OrderLevels},
	{Info: pass.Info{Name: "join-stores", Key: "join", Needs: []string{hasLevels}, Doc: "values that hold the same tuple or stage are stored by one kernel",
		Why: "what they share is then computed once"},
		class: Exact, run: emit.JoinStores},
	{Info: pass.Info{Name: "merge-tuples", Needs: []string{hasLevels}, Doc: "in a kernel with several stores, tuples over the same scores become one",
		Why: "the stores were joined because they share the scores"},
		class: Exact, run: emit.EachKernel(emit.MergeTuples)},
	{Info: pass.Info{Name: "align-chains", Needs: []string{hasLevels}, Doc: "a flat sum beside a chain of nested sums of its length is split along the chain",
		Why: "so that both share all loops: the sum of squares of an RMSNorm runs in the loops of the matvec that it scales"},
		class: Reassociate, run: emit.EachKernel(emit.AlignChains)},
	{Info: pass.Info{Name: "unify-loops", Key: "R4", Needs: []string{hasLevels}, Doc: "independent reduces of equal extent share one loop",
		Why: "what they read is loaded once, and there is one loop to unroll and share out"},
		class: Exact, run: emit.EachKernel(emit.UnifyLoops)},
	{Info: pass.Info{Name: "name-loops", Needs: []string{hasLevels}, Gives: []string{hasNames}, Required: true, Doc: "a loop that has no final name gets one of its own",
		Why: "closed ranges are named by height: without final names two reduces side by side would be one loop"},
		run: emit.EachKernel(emit.NameLoops)},
	{Info: pass.Info{Name: "prune-tuples", Needs: []string{hasNames}, Doc: "components of a softmax tuple that nobody reads fall away",
		Why: "a tuple that two values share has the components of both, and each place reads its own"},
		class: Exact, run: emit.EachKernel(emit.PruneTuples)},
	{Info: pass.Info{Name: "write-kernels", From: pass.Values, To: pass.Kernel, Needs: []string{hasNames}, Gives: []string{hasKernels}, Required: true,
		Doc: "values become stores: ranges are numbered by first use, reads of values and versions become reads of arguments",
		Why: "what is stored, in which launch, is settled: the passes over kernels need plain stores and arguments"},
		run: emit.WriteKernels},
	{Info: pass.Info{Name: "unroll-pairs", Key: "pairs", From: pass.Kernel, To: pass.Kernel, Needs: []string{hasKernels},
		Doc: "loops of two points, of which each reads what the other does, become a store for each point",
		Why: "steps of a sorting network along a few digits of the positions are computed once for each element of a tile, in registers"},
		class: Exact, run: emit.UnrollPairs},
	{Info: pass.Info{Name: "split-axes", Key: "digits", From: pass.Kernel, To: pass.Kernel, Needs: []string{hasKernels},
		Doc: "a stored axis at whose digits folds read has a loop for each digit",
		Why: "tiles of a product share what depends on one loop alone: heads that are merged behind it are one axis"},
		class: Exact, run: emit.SplitAxes},
	{Info: pass.Info{Name: "collapse-loops", Key: "flat", From: pass.Kernel, To: pass.Kernel, Needs: []string{hasKernels},
		Doc: "neighbouring loops of a pointwise kernel that all its buffers have side by side become one",
		Why: "lanes of a CPU run along one loop: a short innermost one would leave them empty"},
		class: Exact, run: emit.CollapseLoops},
	{Info: pass.Info{Name: "collapse-folds", Key: "folds", From: pass.Kernel, To: pass.Kernel, Needs: []string{hasKernels},
		Doc: "a fold of folds that reads side by side along both is one fold",
		Why: "lanes, and the threads that share a fold, run over all of an image instead of each of its rows"},
		class: Reassociate, run: emit.CollapseFolds},
	{Info: pass.Info{Name: "collapse-axes", Key: "axes", From: pass.Kernel, To: pass.Kernel, Needs: []string{hasKernels},
		Doc: "neighbouring axes of a buffer that a kernel reads as the digits of one position become one",
		Why: "elements of a row that was computed in groups lie side by side: lanes of a CPU run across the groups"},
		class: Exact, run: emit.CollapseAxes},
	{Info: pass.Info{Name: "cut-loops", Key: "cuts", From: pass.Kernel, To: pass.Kernel, Needs: []string{hasKernels},
		Doc: "a loop of a pointwise kernel whose position is read modulo a number becomes two loops, or a choice of loads where it turns",
		Why: "lanes of a CPU divide each position and gather what lies side by side: repeated and rolled rows, products of Kronecker"},
		class: Exact, run: emit.CutLoops},
	{Info: pass.Info{Name: "collapse-products", Key: "product", From: pass.Kernel, To: pass.Kernel, Needs: []string{hasKernels},
		Doc: "sums over several loops, and neighbouring loops of positions, of a product whose factors many points share become one each",
		Why: "tiles of matrix instructions want rows along one loop and 16 points of the sum along another: windows have neither"},
		class: Reassociate, run: emit.CollapseProducts},
	{Info: pass.Info{Name: "plan-memory", From: pass.Kernel, To: pass.Kernel, Needs: []string{hasKernels}, Required: true,
		Doc: "temporaries get their places in one arena, by lifetime",
		Why: "a step needs one allocation, and values that do not live at the same time share it"},
		run: emit.PlanMemory},
}

// orders says which row comes before which, and why.
var orders = []pass.Order{
	{Before: "sink-casts", After: "rangeify", Because: "what is converted decides where the graph is cut"},
	{Before: "split-slices", After: "hoist-factors", Because: "a fused projection must fall apart before its parts get different treatment"},
	{Before: "forward-stores", After: "hoist-factors", Because: "the stored value's own factors can leave its readers' sums"},
	{Before: "eliminate-one-hot", After: "hoist-factors", Because: "the one term may be a factor that leaves the sums around it"},
	{Before: "hoist-factors", After: "group-contractions", Because: "what does not depend on the range at all is no scale of a level"},
	{Before: "group-contractions", After: "sum-integers", Because: "a float constant or scale in the sum would keep it from being one of integers"},
	{Before: "sum-integers", After: "share-group-sums", Because: "sums of integers are recognised by their type"},
	{Before: "group-contractions", After: "split-terms", Because: "what is multiplied with weights in the innermost sums is known then"},
	{Before: "group-contractions", After: "scale-terms", Because: "what is multiplied with codes in the innermost sums is known then"},
	{Before: "scale-terms", After: "share-group-sums", Because: "the sum of a group is scaled as the products are"},
	{Before: "split-terms", After: "share-group-sums", Because: "the sum of a group is one of activations: as a value beside a minimum it would be split, too"},
	{Before: "share-group-sums", After: "store-offsets", Because: "what offsets are multiplied with is a value then"},
	{Before: "group-contractions", After: "fuse-softmax", Because: "else the sum of a softmax is inside its own tuple"},
	{Before: "fuse-softmax", After: "scale-scores", Because: "what a softmax weighs is known then"},
	{Before: "scale-scores", After: "join-projections", Because: "the scores of joined values are read through values of their own"},
	{Before: "fuse-softmax", After: "fuse-points", Because: "the softmax needs maximum, exponentials and sums as values of their own"},
	{Before: "fuse-softmax", After: "inline-pointwise", Because: "the softmax needs maximum, exponentials and sums as values of their own"},
	{Before: "fuse-moments", After: "fuse-points", Because: "mean and squares must be values of their own"},
	{Before: "join-projections", After: "fuse-points", Because: "inlining 1/l with a copy of its tuple would read the scores twice"},
	{Before: "fuse-points", After: "inline-pointwise", Because: "a bias goes into its producer's epilogue, not into the loop of the scores"},
	{Before: "inline-pointwise", After: "broadcast-reduces", Because: "nothing is recomputed before what recomputes nothing was tried"},
	{Before: "broadcast-reduces", After: "fuse-tile-epilogues", Because: "a head's sum must be in its reader before the tile is computed"},
	{Before: "fuse-tile-epilogues", After: "stage-prologues", Because: "an epilogue costs no second read, a prologue does"},
	{Before: "stage-prologues", After: "split-grid", Because: "only when kernels exist is it known which are too narrow"},
	{Before: "split-grid", After: "place-parts", Because: "the parts are what is placed"},
	{Before: "place-parts", After: "split-sums", Because: "chunks are shorter sums"},
	{Before: "split-sums", After: "store-narrow", Because: "what is stored at all is settled"},
	{Before: "store-narrow", After: "fuse-updates", Because: "a reader takes the expression as it is stored"},
	{Before: "fuse-updates", After: "absorb-operands", Because: "an operand moves only into values that one kernel stores"},
	{Before: "absorb-operands", After: "order-levels", Because: "a value that was absorbed has no kernel"},
	{Before: "order-levels", After: "join-stores", Because: "only kernels that start together can be one"},
	{Before: "join-stores", After: "merge-tuples", Because: "a tuple is shared by the stores of one kernel"},
	{Before: "merge-tuples", After: "unify-loops", Because: "two copies of a tuple would share a loop, but be computed twice"},
	{Before: "align-chains", After: "unify-loops", Because: "a flat sum shares the loops of a chain only once it is one"},
	{Before: "join-stores", After: "unify-loops", Because: "the stores of one kernel share its loops"},
	{Before: "name-loops", After: "prune-tuples", Because: "a pruned tuple has another height, and loops named by height would change"},
	{Before: "join-stores", After: "collapse-loops", Because: "all stores of the kernel must have the loops"},
	{Before: "unroll-pairs", After: "collapse-loops", Because: "a loop of two that is read turned around lies beside no other one"},
	{Before: "split-axes", After: "collapse-folds", Because: "a fold of folds that reads at digits of a stored axis may read side by side at each"},
	{Before: "collapse-loops", After: "collapse-folds", Because: "loops that two axes share with a fold are then one"},
	{Before: "collapse-folds", After: "collapse-products", Because: "what lies side by side needs no quotients of a position"},
	{Before: "collapse-loops", After: "collapse-axes", Because: "loops that become one read and write at the digits of its position"},
	{Before: "collapse-axes", After: "cut-loops", Because: "digits of a position that are read as one are not to be cut"},
	{Before: "collapse-axes", After: "collapse-products", Because: "axes that loops ran along together are then one already"},
}

// placement is the group of rules that place runs to a fixpoint.
const placement = "placement"

// passes is the table of this stage, from the tensor graph to kernels.
var passes *pass.Table[*state.State]

// Passes lists the rows of this stage's table.
func Passes() []pass.Info { return passes.Infos() }

// Orders lists which row comes before which, and why.
func Orders() []pass.Order { return slices.Clone(orders) }

func init() { // not in the variables: rows refer to passes that ask for rows
	tableRows = rows
	table := pass.Table[*state.State]{Stage: "schedule", Orders: orders, Text: (*state.State).Text, Verify: (*state.State).Verify, Fixpoint: runPlacement}
	for i := range rows {
		r := &rows[i]
		if r.From == "" {
			r.From, r.To = pass.Values, pass.Values
		}
		table.Rows = append(table.Rows, pass.Row[*state.State]{Info: r.Info, Run: r.runOn})
	}
	passes = pass.NewTable(table)
	if err := checkSwitches(); err != nil {
		panic("schedule: table of passes: " + err.Error())
	}
}

// runOn runs the row unless the options switch it off.
func (r *row) runOn(_ context.Context, s *state.State) error {
	if !r.Required && s.Opt.Off.Has(r.rule()) {
		return nil
	}
	s.Pass = &r.Info
	if r.try != nil {
		place.ToFixpoint(s, []place.Rule{{Info: &r.Info, Try: r.try}}, nil)
	} else {
		r.run(s)
	}
	return s.Err
}

// runPlacement runs those rows of the group that are not left out to their
// common fixpoint.
func runPlacement(_ context.Context, s *state.State, names []string, c *pass.Control) error {
	place.ToFixpoint(s, placementRules(s, func(r *row) bool { return slices.Contains(names, r.Name) }), c)
	return s.Err
}

// placementRules lists the wanted rules of the group that are not switched off.
func placementRules(s *state.State, wanted func(*row) bool) []place.Rule {
	var rules []place.Rule
	for i := range tableRows {
		if r := &tableRows[i]; r.Group == placement && !s.Opt.Off.Has(r.rule()) && wanted(r) {
			rules = append(rules, place.Rule{Info: &r.Info, Try: r.try})
		}
	}
	return rules
}

// placeParts places again what split-grid made.
func placeParts(s *state.State) {
	if slices.ContainsFunc(s.Values, func(v *state.Value) bool { return v.Group > 0 && !v.Dead }) {
		place.ToFixpoint(s, placementRules(s, func(*row) bool { return true }), nil)
	}
}
