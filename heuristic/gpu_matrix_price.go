package heuristic

import (
	"cmp"
	"math"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
	"tgc/target"
)

// The price of a product by matrix instructions: an analytic model of one kernel in a
// chain of kernels, like that of a matrix-vector product (gpu_price.go). Each warp loads,
// decodes and multiplies in steps, whose latency other warps of its multiprocessor may
// hide; the busiest one decides.

func (t *matrixTile) cost() float64   { return t.price }
func (t *matrixTile) filled() float64 { return min(t.units, 1) }
func (t *matrixTile) byBytes() bool   { return false }

// oddTiles of tokens have what four would leave empty of 17 to 24, and two decode twice. H200, 20 and 24 sequences of LLaMA 8B's layers, exact, with them:
// Q4_K 23,500 to 26,000 and 29,100 to 32,400 tokens a second, IQ2_XS 18,800 to 28,000 and 22,100 to 33,300 (docs/bench/h200-mixtures.txt). With panels
// a prompt of 77 tokens in Q2_K spilled 2,518 bytes on sm_87: they have powers of two.
const oddTiles = 3

// Values of a tile that are tried.
var (
	matrixCopies = []int64{1, 2, 4, 8}
	matrixTiles  = []int64{1, 2, 4, 8}
	tokenTiles   = []int64{1, 2, oddTiles, 4, 8}
	matrixSides  = []int64{1, 2, 4} // warps along rows, and along tokens
	matrixGroups = []int64{1, 2, 3, 4, 5, 6, 7, 8, 16}
)

// The same of warpgroups, which take more points of halves at once.
var (
	groupCopies = []int64{16}
	groupRows   = []int64{1, 2}
	groupTokens = []int64{2, 4, 8, 16, 32}
	groupSides  = []int64{1, 2, 4}
)

// sumsBeside is 1 where sums stand beside those of the instructions.
func (k *matrixWork) sumsBeside() float64 {
	if k.halves {
		return 0
	}
	return 1
}

// Bounds of what is tried.
const (
	mostMatrixTiles = 16 // of a warp: accumulators fill its registers, those of the instructions and those of the sums
	mostHalfTiles   = 32 // where these are the same
	mostMatrixWarps = 16 // of a block
	leastPanelWarps = 4  // that share what a block has decoded
)

// matrixWork is what of a kernel decides the prices of its tiles.
type matrixWork struct {
	rows, tokens, points float64
	others               float64 // products: of each group of tokens, say
	matrices             float64 // that have rows, tokens and points in common
	bytes                float64 // of all weights
	element              float64 // bytes of an activation
	rowTerms, tokenTerms float64 // of a weight, and of an activation, in a panel
	products             float64 // instructions for 16 points of a tile, where one takes up to 32 bytes
	scales               float64 // which sums of 16 points of a tile are multiplied with, and sums of groups beside them
	rowsAcross           float64 // 1: points of a row do not lie side by side in memory, which are loaded one by one
	tokensAcross         float64 // the same of a token's
	decoding, lookups    float64 // operations that decode the weights of a row and point, of all matrices, and look-ups in tables
	entries              float64 // matrices of weights that are entries of tables
	plain, f16           bool    // weights are floats of 16 bits, and F16
	stored, words        bool    // activations are stored as several terms, in words
	grouped              bool    // warpgroups can multiply it
	halves               bool    // factors are halves, and instructions go on with the sum of the whole row
	flat                 bool    // the sum has one loop, so that all its factors are compared where it is left early
	double, integers     bool    // factors and sums are f64, integers of several bytes: as they are, in no panels
}

func (m *matrixProduct) measure() *matrixWork {
	w := m.weights[0]
	integers := m.severalBytes(w.sum)
	k := &matrixWork{
		double: w.sum.DType == ir.F64, integers: integers, plain: w.rank() == 1 && w.param.DType.IsFloat(), f16: w.rank() == 1 && w.param.DType == ir.F16,
		rows: float64(m.size(m.row)), tokens: float64(m.size(m.token)), points: float64(m.points(w.chain)),
		others:  float64(m.points(m.storeSet().Without(m.row).Without(m.token).List())),
		flat:    len(w.chain) == 1,
		halves:  len(w.chain) == 1 && areHalves(analyse.Factors(w.sum.Src[0])),
		element: activationBytes(!integers && m.integerSum(w.chain[len(w.chain)-1])),
	}
	for _, o := range m.matricesOf(m.weights) {
		k.matrices++
		k.bytes += float64(o.bytes)
	}
	_, decoding, looked := m.operationsOfRow(m.weights)
	k.decoding, k.lookups = decoding/k.points, (looked.permuted+looked.loaded)/k.points
	if looked.loaded > 0 {
		k.entries = k.matrices
	}
	k.rowTerms, k.tokenTerms = m.termsOfRow(w), 1
	if k.rowTerms > 1 {
		k.rowsAcross = m.across(w)
	}
	if k.element > 1 {
		m.measureTokens(k, w)
	}
	group := max(float64(m.size(w.chain[len(w.chain)-1])), matrixPoints)
	if k.stored { // the other numbers were fitted to scales of innermost sums
		group = max(group, min(float64(m.pointsTogether(w)), longestSum))
	}
	k.scales = float64(len(m.weights)) * matrixPoints / group
	k.products = k.matrices * matrixPoints / min(group, widePoints)
	k.grouped = m.desc.HasGroupMatrices() && k.fillsGroups()
	return k
}

// fillsGroups reports factors that panels of warpgroups are made for: of terms in words each would be taken apart before it is stored.
func (k *matrixWork) fillsGroups() bool {
	return !k.double && !k.integers && (k.halves || k.stored && !k.words || k.plain || k.rowTerms > 1)
}

// longestSum is how many points instructions go on with a sum for.
const longestSum = 128

// pointsTogether are those of the innermost sums of a weight between which nothing is multiplied.
func (m *matrixProduct) pointsTogether(w *operand) int64 {
	n := int64(1)
	for sum := w.sum; sum != nil; {
		n = satMul(n, m.size(m.axisOf(sum.ReduceRange())))
		body := sum.Src[0]
		if analyse.IsSum(body) {
			sum = body
		} else if sum = m.sumAround(body, w); sum != nil {
			n = 1
		}
	}
	return n
}

// sumAround is the outermost sum in an expression that reads a weight; nil where there is none.
func (m *matrixProduct) sumAround(u *ir.UOp, w *operand) (sum *ir.UOp) {
	for _, x := range ir.Toposort(u) {
		if analyse.IsSum(x) && analyse.Any(x, func(y *ir.UOp) bool { return slices.Contains(w.accesses, y) }) {
			sum = x // sources come first
		}
	}
	return sum
}

// measureTokens measures the activations that a weight is multiplied with, which may be several stored terms.
func (m *matrixProduct) measureTokens(k *matrixWork, w *operand) {
	terms, bytes := 0.0, 0.0
	for _, o := range m.operands {
		if o.sum == w.sum && o != w && setOf(o.rows).Has(m.token) {
			k.tokensAcross = max(k.tokensAcross, m.across(o))
			terms, bytes = max(terms, termsOf(o)), max(bytes, min(k.element, float64(o.param.DType.Size()*len(o.accesses))))
			k.stored, k.words = k.stored || isTerms(o), k.words || o.param.DType == ir.U32
		}
	}
	if terms > 0 {
		k.tokenTerms, k.element = terms, max(bytes, 2)
	}
}

// across is 1 for an operand whose points of the innermost sum do not lie side by side.
func (a *analysis) across(o *operand) float64 {
	if len(o.chain) == 0 {
		return 0 // a factor of all points
	}
	inner := o.chain[len(o.chain)-1]
	if slices.ContainsFunc(o.accesses, func(u *ir.UOp) bool { return a.stride(u, inner) != 1 }) {
		return 1
	}
	return 0
}

// areHalves reports factors that are one term each.
func areHalves(factors []*ir.UOp) bool {
	return !slices.ContainsFunc(factors, func(f *ir.UOp) bool {
		return f.Op != ir.OpCast || f.Src[0].DType != ir.F16 && f.Src[0].DType != ir.BF16
	})
}

// mostTiles are those of a warp.
func (k *matrixWork) mostTiles() float64 {
	if k.halves {
		return mostHalfTiles
	}
	return mostMatrixTiles
}

// pointBytes are those of a row's weights at one point of the sum, of all matrices.
func (k *matrixWork) pointBytes() float64 { return k.bytes / (k.others * k.rows * k.points) }

// severalBytes reports a sum of integers of which a factor is longer than a byte.
func (a *analysis) severalBytes(sum *ir.UOp) bool {
	return sum.DType.IsInt() && slices.ContainsFunc(a.operands, func(o *operand) bool {
		return o.sum == sum && o.rank() < packedRank && o.param.DType.Size() > 1
	})
}

// termsOf are those of an element in a panel, two bytes each: a float of 32 bits is three, what is shorter or packed is one.
func termsOf(o *operand) float64 {
	switch {
	case o.rank() > 0:
		return 1
	case isTerms(o):
		return 2
	}
	return 3
}

// termsOfRow are those of a weight: what packed blocks hold besides integers, minima of groups times their scale, say, is a float as any other.
func (m *matrixProduct) termsOfRow(w *operand) float64 {
	if w.rank() < packedRank {
		return termsOf(w)
	}
	sum := w.sum
	for inner := m.sumAround(sum.Src[0], w); inner != nil; inner = m.sumAround(sum.Src[0], w) {
		sum = inner
	}
	reads := func(u *ir.UOp) bool {
		return analyse.Any(u, func(x *ir.UOp) bool { return slices.Contains(w.accesses, x) })
	}
	factor := analyse.Product(m.arena, lists.Filter(analyse.Factors(sum.Src[0]), reads))
	if factor == nil {
		return termsOf(w)
	}
	terms := shape.TermsOf(m.bounds, factor)
	return float64(min(terms.F16, terms.BF16))
}

// isTerms reports activations stored as two terms of f16, in a word or in planes.
func isTerms(o *operand) bool {
	return o.param.DType == ir.U32 || o.param.DType == ir.F16 && len(o.accesses) > 1
}

// termBytes are those of a term of a float.
const termBytes = 2

// set is the shared memory of a set of panels.
func (t *matrixTile) set(k *matrixWork) float64 {
	rows, tokens := t.sides()
	if t.group {
		_, rowPanels, tokenPanels := k.groupNumbers()
		return math.Ceil(t.pointsOfStep(k)/linePoints) * linePoints * termBytes * (rows*rowPanels*k.matrices + tokens*tokenPanels)
	}
	return panelPad * t.pointsOfStep(k) * termBytes * (rows*k.rowTerms*k.matrices + tokens*k.tokenTerms)
}

// groupNumbers are of a tile and 16 points the instructions of a warpgroup, and the panels of a row's and of a token's factor: one for each
// term, and of a weight for each power of two that an activation's terms are taken times.
func (k *matrixWork) groupNumbers() (instructions, rowPanels, tokenPanels float64) {
	switch {
	case k.halves:
		return 1, 1, 1
	case k.stored:
		return 2, 2, 2
	case k.rowTerms > 1:
		return 6, 3, 3
	case k.f16:
		return 5, 2, 3
	}
	return 3, 1, 3
}

// sides are the rows and tokens of a block.
func (t *matrixTile) sides() (rows, tokens float64) {
	return float64(t.rows * t.rowWarps * matrixRows), float64(t.tokens * t.tokenWarps * matrixTokens)
}

// blocks is the number of blocks of the grid.
func (t *matrixTile) blocks(k *matrixWork) float64 {
	rows, tokens := t.sides()
	return k.others * math.Ceil(k.rows/rows) * math.Ceil(k.tokens/tokens)
}

// pointsOfStep are those of the sum that a warp goes on in a step.
func (t *matrixTile) pointsOfStep(k *matrixWork) float64 {
	return math.Ceil(k.points / float64(t.steps*t.groups))
}

// fits reports sums that a lane has the registers for, and panels of a warpgroup for which a block has the shared memory.
func (t *matrixTile) fits(k *matrixWork, desc *target.Desc) bool {
	sums := sumsOfLane * float64(t.rows*t.tokens) * (k.matrices + float64(t.held)) // of floats, and of integers until their loop ends
	if t.held > 0 && sums > min(unitRegisters/float64(t.threads()), mostRegisters) {
		return false
	}
	return !t.group || t.set(k)+besidePanels <= float64(desc.SharedBytes)
}

// heldSums is how many sums of integers of a tile a loop over their points holds: all of them in each copy that lies around the
// loop. Spilled, they made a prompt in Q5_K 6.6 times slower (docs/bench/h200-loads.txt).
func (p *planner) heldSums(chain []int) int64 {
	inner, held := chain[len(chain)-1], int64(1)
	if !p.integerSum(inner) || p.left(inner) == 1 {
		return 0
	}
	for _, i := range chain[:len(chain)-1] {
		if !p.integerSum(i) {
			held *= max(p.taken[i], 1)
		}
	}
	if held == 1 {
		return 0 // as many as there are with no copies
	}
	return held * int64(len(p.reduces[inner]))
}

// takesMore reports a tile of a warpgroup that more points at once pay for: panels of terms take as much room with half of the points.
func (t *matrixTile) takesMore(k *matrixWork) bool { return t.group && k.halves }

// twoSets reports room for two sets of panels of a warpgroup.
func (t *matrixTile) twoSets(k *matrixWork, desc *target.Desc) bool {
	return 2*t.set(k)+besidePanels <= float64(desc.SharedBytes)
}

// besidePanels is room for what lies beside a warpgroup's panels: scales, minima and gaps.
const besidePanels = 12 << 10

// linePoints are those in the line of a row that a warpgroup reads.
const linePoints = plan.LinePieces * plan.GroupPieces

// panelPad is what panels take for their terms: rows are skewed, and factors of groups lie beside them.
const panelPad = 1.15

// tiles lists ways to take tiles, the cheapest first.
func (m *matrixProduct) tiles() []*matrixTile {
	var list []*matrixTile
	last := int64(0)
	for _, copies := range slices.Concat(matrixCopies, groupCopies) {
		p := m.along(copies, false)
		chain := m.weights[0].chain
		outer, iterations := p.left(p.longestLeft(chain)), p.leftAlong(chain)
		if iterations == last {
			continue
		}
		last = iterations
		held := map[bool]int64{false: p.heldSums(chain), true: m.along(copies, true).heldSums(chain)} // by whether there are panels
		m.work.eachTile(func(t matrixTile) {
			if t.groups > outer {
				return
			}
			t.copies, t.steps = copies, ceil(outer, t.groups)*(iterations/outer)
			t.held = held[t.panels]
			t.uneven = t.steps*t.groups != iterations
			if !t.fits(m.work, m.desc) || slices.Contains(groupCopies, copies) && !t.takesMore(m.work) {
				return
			}
			t.price = t.estimate(m.work, m.desc, m.knobs.share())
			t.units = t.blocks(m.work) / (float64(m.desc.Cost.Workers) * m.knobs.share())
			list = append(list, &t)
		})
	}
	slices.SortStableFunc(list, func(x, y *matrixTile) int {
		if m.work.double || m.work.rowTerms > 1 { // floats: warps along the rows find their columns, which are read by the word, in the first level of the cache
			return cmp.Or(cmp.Compare(math.Round(x.price), math.Round(y.price)), -cmp.Compare(x.rowWarps, y.rowWarps))
		}
		return cmp.Compare(x.price, y.price)
	})
	return list
}

// eachTile goes through the tiles of warps and the warps of blocks that a product fills.
func (k *matrixWork) eachTile(f func(t matrixTile)) {
	rows, tokens := int64(math.Ceil(k.rows/matrixRows)), int64(math.Ceil(k.tokens/matrixTokens))
	each := func(t matrixTile) {
		for _, groups := range matrixGroups {
			if t.groups = groups; t.warps() <= mostMatrixWarps {
				f(t)
			}
		}
		if t.groups, t.panels = 1, true; t.warps() >= leastPanelWarps && !k.double && !k.integers && t.tokens != oddTiles {
			f(t)
		}
	}
	if k.grouped {
		k.eachGroupTile(rows, tokens, f)
	}
	for _, r := range matrixTiles {
		for _, t := range tokenTiles {
			for _, rowWarps := range matrixSides {
				for _, tokenWarps := range matrixSides {
					if r*rowWarps < 2*rows && t*tokenWarps < 2*tokens && float64(r*t)*k.matrices <= k.mostTiles() {
						each(matrixTile{rows: r, tokens: t, rowWarps: rowWarps, tokenWarps: tokenWarps})
					}
				}
			}
		}
	}
}

// eachGroupTile goes through the tiles of warpgroups.
func (k *matrixWork) eachGroupTile(rows, tokens int64, f func(t matrixTile)) {
	for _, r := range groupRows {
		for _, t := range groupTokens {
			for _, rowGroups := range groupSides {
				for _, tokenGroups := range groupSides {
					rowWarps := rowGroups * plan.GroupWarps
					if r*rowWarps < 2*rows && t*tokenGroups < 2*tokens && float64(r*t)*k.matrices <= k.mostTiles() && rowWarps*tokenGroups <= mostMatrixWarps {
						f(matrixTile{rows: r, tokens: t, rowWarps: rowWarps, tokenWarps: tokenGroups, groups: 1, panels: true, group: true})
					}
				}
			}
		}
	}
}

// numbers are those by which its tiles are priced.
func (t *matrixTile) numbers(k *matrixWork, desc *target.Desc) *target.Tiles {
	switch {
	case t.group && k.halves:
		return &desc.HalfGroupTiles
	case t.group && (k.rowTerms > 1 || k.f16 && !k.stored):
		return &desc.FloatGroupTiles
	case t.group:
		return &desc.GroupTiles
	case k.double || k.integers || k.rowTerms > 1:
		return &desc.FloatTiles
	case k.halves:
		return &desc.HalfTiles
	case k.stored:
		return &desc.TermTiles
	case k.plain:
		return &desc.PlainTiles
	case k.element == 1 && !t.panels:
		return &desc.ByteTiles
	}
	return &desc.Tiles
}

// estimate prices a way to take tiles by a target's numbers, in nanoseconds.
func (t *matrixTile) estimate(k *matrixWork, desc *target.Desc, share float64) float64 {
	n := t.numbers(k, desc)
	units, warps, copies := float64(desc.Cost.Workers)*share, float64(t.warps()), float64(t.copies)
	tiles := float64(t.rows*t.tokens) * k.matrices
	rows, tokens := t.sides()
	blocks := t.blocks(k)
	threads := warps * float64(desc.WarpSize)
	need, limit := t.needs(k, desc), min(unitRegisters/threads, mostRegisters)
	spilled := max(need.registers/limit-1, 0)
	resident, each := blocksAtOnce(threads, min(need.registers, limit)), blocks/units
	if t.panels {
		sets, room := t.set(k), float64(desc.SharedBytes)
		if 2*sets <= room {
			sets *= 2 // one is filled while the other is multiplied
		}
		resident = max(min(resident, math.Floor(room/sets)), 1)
	}
	busiest, waves := busiest(each, resident), math.Ceil(each/resident)

	steps, operations, ragged := float64(t.steps), need.operations, 1.0
	switch {
	case k.flat && t.uneven:
		operations *= n.Compared
	case int64(k.points)%(t.steps*t.groups) != 0:
		ragged = n.Ragged
	}
	memory := busiest / blocks * k.bytes * float64(desc.Cost.ByteDRAM) / 1e6 * max(units, min(float64(desc.Cost.Workers), blocks))
	cached := blocks * k.points * (rows*k.pointBytes() + tokens*k.element) * n.Cached
	serial := waves * steps * (need.latency + copies*operations*n.Operation)
	issue := busiest * warps * steps * copies * operations * n.Issue * ragged
	joining := 0.0
	if t.groups > 1 {
		joining = n.Joining * waves * tiles * float64(t.groups)
	}
	code := copies * operations * n.Code
	return n.Start + memory + cached + serial + issue + joining + code + need.spill*spilled*issue
}

// tileNeeds are what a tile's steps take.
type tileNeeds struct {
	operations float64 // of a warp, for the tiles of 16 points of the sum
	registers  float64 // of a thread
	spill      float64 // of the time to issue, for each time that registers do not suffice
	latency    float64 // ns of a step
}

// Registers of f64.
const (
	doubleWords = 2 // of one
	sumsOfLane  = matrixRows * matrixTokens / matrixLanes
)

// needs are those of a warp that decodes its weights and splits its activations itself, or makes its part of panels, each
// term of an element by itself, and then loads from them what its tiles need.
func (t *matrixTile) needs(k *matrixWork, desc *target.Desc) tileNeeds {
	n, turns := t.numbers(k, desc), t.group && t.twoSets(k, desc)
	needs := t.needsOf(k, n, turns)
	needs.latency = n.Latency
	if t.panels && !turns {
		needs.latency += n.PanelLatency
	}
	return needs
}

// needsOf are needs but for the latency; turns says that a warpgroup has two sets of panels.
func (t *matrixTile) needsOf(k *matrixWork, n *target.Tiles, turns bool) tileNeeds {
	rows, tokens := float64(t.rows), float64(t.tokens)
	tiles, decoding := rows*tokens*k.matrices, k.decoding+k.lookups*n.Lookup
	switch {
	case k.double:
		return tileNeeds{
			operations: rows*n.Rows + tokens*n.Tokens + tiles*n.Double,
			registers:  n.DoubleRegisters + doubleWords*(sumsOfLane*tiles+float64(t.copies)*matrixWeights*(rows+tokens/2)),
			spill:      n.Spill,
		}
	case k.integers:
		return tileNeeds{
			operations: rows*n.Rows + tokens*n.Tokens,
			registers:  n.IntegerRegisters + n.IntegerSums*tiles + float64(t.copies)*matrixWeights*(rows+tokens/2),
			spill:      n.IntegerSpill, // where the registers are known: so many that are stored are read in each step
		}
	case t.group:
		return t.groupNeeds(k, n, decoding, turns)
	case t.panels && k.rowTerms > 1:
		return tileNeeds{
			operations: n.FloatPanel*(rows*n.Rows/float64(t.tokenWarps)+tokens*n.Tokens/float64(t.rowWarps)) + (2*rows+tokens)*n.PanelRead + tiles*n.Product,
			registers:  n.PanelRegisters + n.PanelAccumulators*tiles + float64(t.copies)*n.FloatLoaded*(rows*k.matrices+tokens) - t.once(n.PanelOnce),
			spill:      n.PanelSpill,
		}
	case t.panels:
		return tileNeeds{
			operations: rows*(k.matrices*n.PanelRows+k.entries*n.PanelEntries+decoding*n.PanelDecoding)/float64(t.tokenWarps) + tokens*k.tokenTerms*n.PanelTerms/float64(t.rowWarps) +
				(2*rows*k.matrices+tokens*k.tokenTerms)*n.PanelRead + rows*tokens*k.scales*n.PanelScale + tiles*n.Product,
			registers: n.PanelRegisters + n.PanelAccumulators*tiles + float64(t.copies)*n.PanelLoaded*(rows*k.matrices+tokens),
			spill:     n.PanelSpill,
		}
	}
	loaded := n.Loaded * (rows*matrixWeights*k.pointBytes()/wordBytes + tokens*k.element)
	if k.element == 1 {
		return tileNeeds{
			operations: rows*decoding*n.Decoding + tokens*n.Tokens + rows*tokens*(k.products*n.Product+k.scales*n.Scale),
			registers:  n.Registers + n.Accumulators*tiles + float64(t.copies)*loaded,
			spill:      n.Spill,
		}
	}
	return tileNeeds{
		operations: rows*(n.Rows+k.rowsAcross*n.Across+decoding*n.Decoding+k.pointBytes()*n.Bytes) + tokens*(n.Tokens+k.tokensAcross*n.Across/2) + tiles*n.Product,
		registers:  n.Registers + n.Accumulators*tiles + float64(t.copies)*loaded - t.once(n.Once),
		spill:      n.Spill,
	}
}

// groupNeeds are those of a warp of a warpgroup, whose instructions run while it fills panels, if there is another set of them.
func (t *matrixTile) groupNeeds(k *matrixWork, n *target.Tiles, decoding float64, turns bool) tileNeeds {
	rows, tokens := float64(t.rows), float64(t.tokens)
	tiles := rows * tokens * k.matrices
	instructions, rowPanels, tokenPanels := k.groupNumbers()
	rowSide, tokenSide := k.matrices*(n.PanelRows+(rowPanels-1)*n.PanelRead)+decoding*n.PanelDecoding, tokenPanels*n.PanelTerms
	if k.rowTerms > 1 { // floats on both sides
		rowSide, tokenSide = rowPanels*n.FloatPanel, tokenPanels*n.FloatPanel*matrixTokens/matrixRows
	}
	filling := rows*rowSide/float64(t.tokenWarps) + tokens*tokenSide/float64(t.rowWarps)
	multiplying := tiles * instructions * n.Product
	both := n.Overlap + 1/float64(t.steps) // there is nothing to multiply while the first set is filled
	if !turns {
		both = 1
		filling += tokens * tokenPanels * n.PanelStored / float64(t.rowWarps)
	}
	return tileNeeds{
		operations: max(filling, multiplying) + both*min(filling, multiplying) + rows*tokens*k.scales*n.PanelScale,
		registers:  n.PanelRegisters + sumsOfLane*tiles*(1+k.sumsBeside()) + float64(t.copies)*n.PanelLoaded*rows*k.matrices/float64(t.tokenWarps),
		spill:      n.PanelSpill,
	}
}

// once is what a sum without a loop saves: nothing is held of the step after.
func (t *matrixTile) once(registers float64) float64 {
	if t.steps > 1 {
		return 0
	}
	return registers
}

// features are what the price is made of, for those who fit it.
func (t *matrixTile) features(k *matrixWork) map[string]float64 {
	f := map[string]float64{
		"rows": k.rows, "tokens": k.tokens, "points": k.points, "others": k.others, "matrices": k.matrices, "bytes": k.bytes, "element": k.element, "row_terms": k.rowTerms, "token_terms": k.tokenTerms, "products": k.products, "decoding": k.decoding, "lookups": k.lookups, "entries": k.entries, "scales": k.scales, "rows_across": k.rowsAcross, "tokens_across": k.tokensAcross,
		"row_tiles": float64(t.rows), "token_tiles": float64(t.tokens), "row_warps": float64(t.rowWarps), "token_warps": float64(t.tokenWarps),
		"groups": float64(t.groups), "copies": float64(t.copies), "steps": float64(t.steps),
	}
	if t.panels {
		f["panels"] = 1
	}
	if k.halves {
		f["halves"] = 1
	}
	if t.group {
		f["group"] = 1
	}
	return f
}
