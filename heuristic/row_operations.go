package heuristic

import "tgc/ir"

// lookups are numbers of look-ups: permutes select among few bytes, the values of an
// entry of a longer table are loaded together.
type lookups struct{ permuted, loaded float64 }

// operationsOfRow counts the operations on weights for one row, those of them that all
// uses share, and the look-ups in tables. Operations on bytes are made on four at a time.
func (a *analysis) operationsOfRow(weights []*operand) (operations, decoding float64, looked lookups) {
	counted, uses := make(map[*ir.UOp]bool), a.usesOf(weights)
	for _, w := range weights {
		chain, rows := setOf(w.chain), setOf(w.rows)
		each := 1.0
		if a.dotAxis(w.chain[len(w.chain)-1]) {
			each /= dotLanes
		}
		for _, u := range ofSum(w.sum) {
			free := a.free.Of(u)
			if counted[u] || !u.Op.IsElementwise() && u.Op != ir.OpLoad && u.Op != ir.OpField || u.DType == ir.Idx || free.Meet(rows).Empty() {
				continue
			}
			counted[u] = true
			n := float64(a.points(free.Meet(chain.Union(uses)).List()))
			if u.Op == ir.OpLoad && u.Src[0].Op == ir.OpTable {
				looked.add(a, w, u, n)
				continue
			}
			operations += each * n
			if free.Meet(uses).Empty() {
				decoding += each * n
			}
		}
	}
	return operations, decoding, looked
}

// add counts n look-ups of a weight in the table that a node loads from.
func (l *lookups) add(a *analysis, w *operand, load *ir.UOp, n float64) {
	if values := len(load.Src[0].Arg.(ir.TableArg).Data); values <= permutedBytes && load.DType.Size() == 1 {
		l.permuted += n
		return
	}
	for i := len(w.chain) - 1; w.chain[i] != a.byteAxis(w); i-- {
		n /= float64(a.size(w.chain[i]))
	}
	l.loaded += n
}

// permutedBytes is the longest table in which permutes look up.
const permutedBytes = 16
