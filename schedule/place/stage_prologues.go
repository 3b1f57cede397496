package place

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// StagePrologues: a light value is computed by each block for itself, in
// front of its loops, and read as STAGE(p; axes) by every reader. Axes whose
// index holds a reduce range or a LOAD are staged; axes that are one function
// of the reader's own ranges at all uses stay outside. LayerNorm's row, q norm
// and RoPE in attention, top-k ids, the combine of a split reduce.
func StagePrologues(s *state.State, p *state.Value) bool {
	if p.StoredWithTile {
		return refused(s, p, "stored with the tile that it is made of")
	}
	own, uses := ownRow(s, p), s.PlacedUses(p)
	if turnsAgain(s, p, uses) {
		return refused(s, p, "a block would read columns for its rows", state.Number{Name: "points", Value: s.Points(p.Ranges)})
	}
	for _, u := range uses {
		if s.FactsOf(p.Body).Reduce && placesRows(s, u) {
			return madeAgain(s, p) || refused(s, p, placesRowsReason, state.Number{Name: "points", Value: s.Points(p.Ranges)})
		}
		if !own && repeatedByBlocks(s, p, u) {
			return madeAgain(s, p) || refused(s, p, "too much work for every block", state.Number{Name: "work", Value: s.Work(p.Body, p.Ranges)}, state.Number{Name: "limit", Value: s.StageWork(s.Points(p.Ranges))})
		}
	}
	if ahead := carried(s, p); len(ahead) > 0 {
		besideReaders(s, p, ahead)
		p.Pinned = true
		s.Record(p, true, "stored: a light reader of it needs a kernel that reads it, too", state.Number{Name: "work", Value: s.Work(p.Body, p.Ranges)})
		return true
	}
	for _, c := range s.Consumers(p) {
		staged, outside := stageAxes(s.Graph, c, p)
		axes := stagedRanges(p, staged)
		light, size, work := s.IsLight(p, axes)
		if len(axes) > 0 && apartInMemory(s, p, c, outside, staged, work) {
			return refused(s, p, "a block would make it for single columns", state.Number{Name: "points", Value: s.Points(p.Ranges)})
		}
		if foldedBesideRows(s, p, c) || readInProduct(s, p, c, axes) {
			return madeAgain(s, p) || refused(s, p, "a matrix product reads many of its rows at once", state.Number{Name: "points", Value: s.Points(p.Ranges)}, state.Number{Name: "limit", Value: s.Opt.Profile.RepeatCap})
		}
		if !light && !own {
			return refused(s, p, s.WhyHeavy(p, axes), state.Number{Name: "size", Value: size}, state.Number{Name: "cap", Value: s.Opt.Profile.StageCap}, state.Number{Name: "work", Value: work}, state.Number{Name: "limit", Value: s.StageWork(s.Points(p.Ranges))})
		}
		inStore := len(axes) == 0 && c.Target >= 0 // in the loops of its store, as in its own
		if once, again := stagedWork(s.Exprs, p, staged, work); !inStore && again > s.Opt.Profile.StageWork && again > 2*once {
			return refused(s, p, "its reduces would run again for every stage", state.Number{Name: "work", Value: again}, state.Number{Name: "stored", Value: once})
		}
		if len(axes) == 0 && !s.FactsOf(p.Body).Reduce {
			return refused(s, p, "no axis to stage")
		}
	}
	if waitAnyway(s, p) && madeAgain(s, p) {
		p.Pinned = true // stages in what is left would spare no launch
		return true
	}
	ok := s.ReplaceReads(p, asStage(s.Graph, p), state.BodiesOnly)
	if ok {
		s.Record(p, true, "light", state.Number{Name: "points", Value: s.Points(p.Ranges)}, state.Number{Name: "work", Value: s.Work(p.Body, p.Ranges)}, state.Number{Name: "limit", Value: s.StageWork(s.Points(p.Ranges))})
	}
	return ok
}

// refused records why blocks do not make p for themselves.
func refused(s *state.State, p *state.Value, why string, numbers ...state.Number) bool {
	s.Record(p, false, why, numbers...)
	return false
}

// madeAgain computes a light value, which matrix products of many rows read on a GPU, again in its other readers, each of which has all
// of its loops: both are then of one dependence level. An example is the largest of a group of activations, which their
// integers are made with and which scales the product of those.
func madeAgain(s *state.State, p *state.Value) bool {
	if !s.Opt.Profile.SharedStages {
		return false
	}
	var others []*state.Value
	for _, c := range s.Consumers(p) {
		if s.FactsOf(c.Body).Weights {
			continue
		}
		axes := axesIn(s, c, p)
		if light, _, _ := s.IsLight(p, axes); len(axes) > 0 || !light || !s.FactsOf(p.Body).Reduce || !storedWith(s, c, p) {
			return false
		}
		others = append(others, c)
	}
	if len(others) == 0 || len(others) == len(s.Consumers(p)) || !s.ReplaceReadsIn(others, p, asStage(s.Graph, p), state.EdgeShare) {
		return false
	}
	s.Record(p, true, "made again by readers with its loops", state.Number{Name: "readers", Value: int64(len(others))}, state.Number{Name: "work", Value: s.Work(p.Body, p.Ranges)})
	return true
}

// waitAnyway reports that products that read p also read what else is made of it.
func waitAnyway(s *state.State, p *state.Value) bool {
	readers := s.Consumers(p)
	made := func(id int) bool {
		return slices.ContainsFunc(readers, func(c *state.Value) bool { return c.ID == id && !s.FactsOf(c.Body).Weights })
	}
	return !slices.ContainsFunc(readers, func(c *state.Value) bool {
		return s.FactsOf(c.Body).Weights && !slices.ContainsFunc(s.ReadMemo[c.ID].Values, made)
	})
}

// storedWith reports a value that blocks of its readers do not make, since it is too much for each of them or a matrix product reads
// it, perhaps only with what it folds of p.
func storedWith(s *state.State, v, p *state.Value) bool {
	return slices.ContainsFunc(s.PlacedUses(v), func(u state.PlacedUse) bool { return repeatedByBlocks(s, v, u) }) ||
		slices.ContainsFunc(s.Consumers(v), func(c *state.Value) bool {
			axes := axesIn(s, c, v)
			return readInProduct(s, v, c, axes) || len(axes) > 0 && inTiles(s, c) && heavyFolds(s, v, p)
		})
}

// readInProduct reports rows that a matrix product reads as they are stored.
func readInProduct(s *state.State, p, reader *state.Value, axes []*ir.UOp) bool {
	return len(axes) > 0 && (readAsHalves(s, p, reader) || manyRows(s, p, reader, axes))
}

// carried are light readers of p that need a heavy value made of p, too. An example is
// a residual stream whose summands are normed: every sum of it is light, and is made of the
// one before and of a matrix product that reads that one. Kernels that stage such a reader
// would make p again, and with it all that p was staged with, so that the operands of
// kernels grow from layer to layer.
func carried(s *state.State, p *state.Value) (ahead []*state.Value) {
	readers := s.Consumers(p)
	if len(readers) < 2 || !lightInReaders(s, p) {
		return nil
	}
	return lists.Filter(readers, func(c *state.Value) bool { return lightInReaders(s, c) && needsHeavy(s, c, p) })
}

// besideReaders has blocks of the products that read p, of one row, make it for themselves where that is cheaper, beside the kernel that
// stores it for those ahead: none waits for it. What other stages make of it, such as integers, each would make from it again, and of
// two rows some shapes gain and others lose.
func besideReaders(s *state.State, p *state.Value, ahead []*state.Value) {
	products := lists.Filter(s.Consumers(p), func(c *state.Value) bool { return !slices.Contains(ahead, c) })
	apart := func(c *state.Value) bool {
		light, _, _ := s.IsLight(p, axesIn(s, c, p))
		return !light || !s.FactsOf(c.Body).Weights || s.WeightReuse(c) > 1
	}
	if s.Opt.Profile.SharedStages && !slices.ContainsFunc(products, apart) {
		s.ReplaceReadsIn(products, p, asStage(s.Graph, p), state.BesideShare)
	}
}

// lightInReaders reports a value of which blocks of all its readers may make what each of them needs: of a batch one row.
func lightInReaders(s *state.State, v *state.Value) bool {
	readers := s.Consumers(v)
	if len(readers) == 0 {
		light, _, _ := s.IsLight(v, v.Ranges)
		return light
	}
	return !slices.ContainsFunc(readers, func(c *state.Value) bool {
		light, _, _ := s.IsLight(v, axesIn(s, c, v))
		return !light
	})
}

// needsHeavy reports that v needs a value that is made of p, perhaps by way of others, and that no block makes for itself.
func needsHeavy(s *state.State, v, p *state.Value) bool {
	heavy := false
	made := map[int]bool{p.ID: true} // of p, by number
	var visit func(id int) bool
	visit = func(id int) bool {
		known, ok := made[id]
		if ok {
			return known
		}
		made[id] = false
		of := false
		for _, read := range s.ReadMemo[id].Values {
			of = visit(read) || of
		}
		if made[id] = of; of && !heavy {
			heavy = !lightInReaders(s, s.Values[id])
		}
		return of
	}
	for _, id := range s.ReadMemo[v.ID].Values {
		visit(id)
	}
	return heavy
}

// readAsHalves reports rows that are rounded to halves for a product by matrix instructions, which takes them as they are stored:
// what rounds them in its loops is no operand of such an instruction, and three terms where it is.
func readAsHalves(s *state.State, p, reader *state.Value) bool {
	n := s.Opt.Profile.MatrixTokens
	return n > 0 && expr.RoundsToHalf(p.Body) && s.FactsOf(reader.Body).Weights && s.WeightReuse(reader) >= n
}

// manyRows reports several rows of activations for a reader on a GPU whose weights are
// used for each of them: a block makes them all. Where they fill at most half a tile of
// matrix instructions it does so for one reduce of each group of a row, such as a sum,
// but of many elements not for what differs from point to point, nor for a reduce that needs another,
// such as the largest of a norm's row: each is a round of the block, in which the
// weights of its rows wait in registers. Products by matrix instructions read what is
// stored, but for little of whole tiles.
func manyRows(s *state.State, p, reader *state.Value, axes []*ir.UOp) bool {
	n := s.Opt.Profile.MatrixTokens
	if n == 0 || !s.FactsOf(reader.Body).Weights {
		return false
	}
	rows := s.Points(p.Ranges) / s.Points(axes)
	if inTiles(s, reader) {
		return s.Points(p.Ranges) > s.Opt.Profile.RepeatCap || s.Height(p.Body) > 0 && heavyFolds(s, p)
	}
	return (rows > n/2 || rows > 1 && !oneReduce(s, p, axes)) && !preparedByBlocks(s, p, rows)
}

// inTiles reports a product whose weights are used for whole tiles of matrix instructions.
func inTiles(s *state.State, reader *state.Value) bool {
	n := s.Opt.Profile.MatrixTokens
	return n > 0 && s.FactsOf(reader.Body).Weights && s.WeightReuse(reader)%n == 0
}

// heavyFolds reports values whose folds, all together, are too much work to be done again by every block.
func heavyFolds(s *state.State, values ...*state.Value) bool {
	most, work := s.Opt.Profile.RepeatCap, int64(0)
	for _, p := range values {
		work += min(s.Work(p.Body, p.Ranges), most+1)
	}
	return work > most
}

// preparedByBlocks reports rows so short, and so little work for each of their elements, that each block makes all of them ready. It
// reads what it stages again for each row of weights: floats count as often as they have bytes.
func preparedByBlocks(s *state.State, p *state.Value, rows int64) bool {
	elements := s.MostReads(p.Body, p.Ranges)
	bytes := expr.Saturate(s.Points(p.Ranges), int64(p.Node.DType.Size()))
	return s.BlocksPrepare(rows, max(elements, bytes)) && s.Work(p.Body, p.Ranges) <= expr.Saturate(elements, s.Opt.Profile.StageOps)
}

// ownRow reports rows that a block of a GPU needs one of, the block that folds it: what is
// stored of them another kernel would only read again. Nothing of a row is a product, whose
// columns rows would have to share, and its reader goes into none, which would make it again.
func ownRow(s *state.State, p *state.Value) bool {
	f, profile, readers := s.FactsOf(p.Body), &s.Opt.Profile, s.Consumers(p)
	if !profile.SharedStages || f.State || !f.Constant || p.Pinned || p.Target >= 0 || len(readers) != 1 || inProduct(s, readers[0]) {
		return false
	}
	reader, last := readers[0], len(p.Ranges)-1
	loops := reader.StoreLoops()
	if last < 1 || len(loops) != len(p.Ranges) || !expr.ConstantExtents(loops) || !sameExtents(s, loops, p.Ranges) {
		return false
	}
	staged, outside := stageAxes(s.Graph, reader, p)
	if slices.Index(staged, true) != last || !slices.Equal(outside[:last], loops[:last]) {
		return false
	}
	row := p.Ranges[last:]
	points := s.Points(row)
	if points > profile.StageCap || points < profile.RowLanes || s.Work(p.Body, row) > profile.LaunchEdge {
		return false
	}
	folded := analyse.Any(p.Body, func(u *ir.UOp) bool {
		return u.Op == ir.OpField || u.Op == ir.OpStage || u.Op == ir.OpReduce && s.DependsOn(u, row...)
	})
	return !folded && !foldsAlong(s.Exprs, reader, loops[last:])
}

// inProduct reports a value that a product with weights takes.
func inProduct(s *state.State, v *state.Value) bool {
	return slices.ContainsFunc(s.Users[v.ID], func(id int) bool { return multiplies(s, s.Values[id], v) })
}

// sameExtents reports loops of as many points each.
func sameExtents(s *state.State, x, y []*ir.UOp) bool {
	return slices.EqualFunc(x, y, func(a, b *ir.UOp) bool { return s.Points([]*ir.UOp{a}) == s.Points([]*ir.UOp{b}) })
}

// sectorOps is what storing an element costs where its neighbours are other blocks': 32 bytes each.
const sectorOps = 8

// apartInMemory reports a stage of folds that depends on the loop along which a reader's elements lie side
// by side: blocks of a GPU then have single columns, and no thread reads or writes beside another.
func apartInMemory(s *state.State, p, reader *state.Value, outside []*ir.UOp, staged []bool, work int64) bool {
	loops := reader.StoreLoops()
	if !s.Opt.Profile.SharedStages || len(loops) == 0 || !s.FactsOf(p.Body).Reduce && s.Height(reader.Body) == 0 {
		return false // what is no fold, threads make where they read it, but for another fold
	}
	last := loops[len(loops)-1]
	work = max(work, s.Work(reader.Body, loops[:len(loops)-1])) // its own folds are those of a column, too
	work = max(expr.Saturate(work, s.Points(loops[len(loops)-1:])), expr.Saturate(sectorOps, s.Points(loops)))
	if work <= s.Opt.Profile.LaunchEdge || len(loops) == 1 && !readsAlong(s, reader.Body, last) {
		return false // a launch costs more
	}
	for j, x := range outside {
		if !staged[j] && x != nil && slices.Contains(s.Free.Of(x), last) {
			return true
		}
	}
	return false
}

// readsAlong reports loads whose last index moves with a loop.
func readsAlong(s *state.State, body, loop *ir.UOp) bool {
	return slices.ContainsFunc(ir.Toposort(body), func(u *ir.UOp) bool {
		return u.Op == ir.OpLoad && len(u.Src) > 1 && slices.Contains(s.Free.Of(u.Src[len(u.Src)-1]), loop)
	})
}

// oneReduce reports a value with one reduce, which is another one at all points of axes.
func oneReduce(s *state.State, p *state.Value, axes []*ir.UOp) bool {
	reduces := 0
	for _, u := range ir.Toposort(p.Body) {
		if u.Op == ir.OpReduce {
			reduces++
			if len(ir.WithoutRanges(axes, s.Free.Of(u))) > 0 {
				return false
			}
		}
	}
	return reduces == 1
}

// asStage replaces the reads of p in a consumer by reads of one stage.
func asStage(s *state.Graph, p *state.Value) state.Replacement {
	stages := make(map[*state.Value]*ir.UOp)
	staged := make(map[*state.Value][]bool)
	return state.Replacement{
		Height: func(c *state.Value) int {
			axes, outside := stageAxes(s, c, p)
			staged[c], stages[c] = axes, stageOf(s, p, axes, outside)
			return s.Height(stages[c])
		},
		With: func(c *state.Value, load *ir.UOp) *ir.UOp {
			var index []*ir.UOp
			for j, x := range load.Indices() {
				if staged[c][j] {
					index = append(index, x)
				}
			}
			if len(index) == 0 {
				return stages[c]
			}
			return s.A.Load(stages[c], index...)
		},
	}
}

// stagedWork is the work of computing all points of p once, in its own loops,
// and that of its stages together: more where a reduce depends on a staged axis
// but not on one outside (a row's sum, staged for every column).
func stagedWork(s *expr.Exprs, p *state.Value, staged []bool, work int64) (once, again int64) {
	var outside []*ir.UOp
	for j, r := range p.Ranges {
		if !staged[j] {
			outside = append(outside, r)
		}
	}
	return s.Work(p.Body, p.Ranges), expr.Saturate(work, s.Points(outside))
}

// stageOf is STAGE(p; staged axes), or p itself when no axis is staged.
func stageOf(s *state.Graph, p *state.Value, staged []bool, outside []*ir.UOp) *ir.UOp {
	index := slices.Clone(outside)
	var axes []*ir.UOp
	for j, r := range p.Ranges {
		if staged[j] {
			index[j] = s.NewRange(r.Src[0])
			axes = append(axes, index[j])
		}
	}
	body := s.Instantiate(p, index)
	if len(axes) == 0 {
		return body
	}
	return s.CloseStage(s.A.Make(ir.OpStage, body.DType, ir.StageArg{}, append([]*ir.UOp{body}, axes...)...))
}
