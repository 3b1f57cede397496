package algebra

import (
	"math"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// fuse-softmax: a maximum m over t, and sums over t of exp2(c*(s-m)) times
// anything that does not depend on m, become one tuple reduce (online softmax,
// Milakov and Gimelshein 2018; with a weighted sum it is flash attention, Dao
// et al. 2022). Component 0 is the running maximum of s; component i is the sum
// of exp2(c*(s - component 0)) * g_i. c is in the lambda, not in the score,
// so that differences are taken before they are scaled.
//
// Every value gets a tuple with the components that it needs, and a maximum
// alone stays a plain REDUCE; when values are joined (join-projections), tuples and maxima
// of one score become one node.

// FuseSoftmax looks for sums that hang on the maximum of value m.
func FuseSoftmax(s *state.State, m *state.Value) {
	if m.Body.Op != ir.OpReduce || m.Body.Arg.(ir.ReduceArg).Op != ir.OpMax || !m.Body.DType.IsFloat() {
		return
	}
	readers := reducesOver(s.Graph, m)
	stored := storesScores(s, m, readers)
	for _, b := range readers {
		if stored {
			s.Record(b, false, "scores are stored between two products")
			continue
		}
		body := withTuples(s, m, b)
		if body != b.Body && softmaxPays(s, m, b, body) {
			b.Body = body
			s.Record(b, true, "sum of exponentials over the range of a maximum", state.Number{Name: "extent", Value: s.Points(expr.BinderRanges(m.Body))})
		}
	}
}

// withTuples is the body of b with a tuple for each sum that hangs on the maximum.
func withTuples(s *state.State, m, b *state.Value) *ir.UOp {
	return s.RewriteReduces(b.Body, func(u *ir.UOp) *ir.UOp {
		if u.Arg.(ir.ReduceArg).Op != ir.OpAdd || u.ReduceRange().Src[0] != m.Body.ReduceRange().Src[0] {
			return u
		}
		tuple, ok := softmaxSum(s, m, u)
		if !ok {
			return u
		}
		return s.A.Proj(tuple, 1)
	})
}

// cutIntoParts reports rows so few and long that split-grid cuts them: parts of both the maximum and the sum are one kernel, which reads the
// row once, and their price here is that of a few blocks.
func cutIntoParts(s *state.State, m *state.Value) bool {
	p := &s.Opt.Profile
	n, constant := m.Body.ReduceRange().Src[0].Int()
	return constant && p.SharedStages && p.GridSplits >= 2 && expr.ConstantExtents(m.Ranges) && s.Points(m.Ranges) < p.Parallel && n >= p.LaunchEdge
}

// softmaxPays compares the price of the tuples of b with that of their exponentials apart:
// stored, these are an operand of a sum like any other, whose tiles use often what they
// load. It matters where what they weigh has points of its own. Scores that are computed and
// weigh something (attention) are not priced: apart they would all be stored, which no memory may hold.
func softmaxPays(s *state.State, m, b *state.Value, body *ir.UOp) bool {
	readers := reducesOver(s.Graph, m)
	weighs := s.Opt.Profile.Lanes <= 1 || slices.ContainsFunc(readers, func(r *state.Value) bool { return s.Points(r.Ranges) > s.Points(m.Ranges) })
	if weighs && len(computed(s, m.Body.Src[0], s.Points(m.Ranges))) > 0 {
		return true
	}
	if s.Points(b.Ranges) == s.Points(m.Ranges) && cutIntoParts(s, m) {
		return true
	}
	apart, together := s.Price(b.Body, b.StoreLoops()), s.PriceUntiled(body, b.StoreLoops())
	var reads state.Reads
	state.CollectReads(b.Body, new(ir.Visited), &reads)
	for _, id := range reads.Values {
		if p := s.Values[id]; s.IsPointwise(p) && !p.Pinned && p.Target < 0 && reaches(s.Graph, p.Body, m.ID) {
			apart += s.Price(p.Body, p.Ranges)
			if !weighs && slices.ContainsFunc(s.Users[p.ID], func(id int) bool { return !slices.Contains(readers, s.Values[id]) }) {
				together += s.Price(p.Body, p.Ranges) // others read it still
			}
		}
	}
	return s.Cheaper(m, together, apart)
}

// fewestStored is the number of scores from which two launches more are little.
const fewestStored = 4096

// storesScores reports scores that are computed, and that a target stores: both products
// around them then have the tiles of any other. Those of a cache grow with it. A warp of matrix instructions that holds
// its queries makes scores as they are needed, and so do lanes of a CPU that are queries.
func storesScores(s *state.State, m *state.Value, readers []*state.Value) bool {
	rows := s.Points(m.Ranges)
	scores := append(slices.Clone(m.Ranges), m.Body.ReduceRange())
	if n := s.Points(scores); !expr.ConstantExtents(scores) || n < fewestStored || n > s.Opt.Profile.StoredScores {
		return false
	}
	folds := computed(s, m.Body.Src[0], rows)
	if len(folds) == 0 {
		return false
	}
	holds := func(b *state.Value) bool {
		if s.Opt.Profile.MatrixTokens == 0 {
			return !readApart(s, m, folds, b) && lanesHold(s, m, b)
		}
		return !slices.ContainsFunc(folds, func(p *state.Value) bool {
			return analyse.IsSum(p.Body) && !analyse.HoldsQueries(s.Points(b.Ranges)/rows, s.Points(expr.BinderRanges(p.Body)), analyse.TermsOfFloat)
		})
	}
	weighs := slices.ContainsFunc(readers, func(b *state.Value) bool {
		return s.Points(b.Ranges) > rows && !holds(b) && withTuples(s, m, b) != b.Body
	})
	return weighs && !slices.ContainsFunc(folds, func(p *state.Value) bool { return s.FactsOf(p.Body).State })
}

// readApart reports folds under the scores of a maximum m that are no sums, or that anything reads but m, b and what has
// a point for each row: these are stored anyway, as for derivatives.
func readApart(s *state.State, m *state.Value, folds []*state.Value, b *state.Value) bool {
	rows := s.Points(m.Ranges)
	return slices.ContainsFunc(folds, func(p *state.Value) bool {
		if !analyse.IsSum(p.Body) {
			return true
		}
		seen := map[int]bool{p.ID: true}
		for todo := []int{p.ID}; len(todo) > 0; todo = todo[1:] {
			for _, user := range s.Users[todo[0]] {
				u := s.Values[user]
				switch {
				case seen[user] || u == m || u == b:
				case u.Pinned || u.Target >= 0 || !s.IsPointwise(u) && s.Points(u.Ranges) > rows:
					return true
				case s.IsPointwise(u):
					todo = append(todo, user)
				}
				seen[user] = true
			}
		}
		return false
	})
}

// lanesHold reports a sum of which lanes of a CPU hold the queries: points of the scores that what these weigh does not
// depend on.
func lanesHold(s *state.State, m, b *state.Value) bool {
	if s.Points(b.Ranges)/s.Points(m.Ranges) > s.Opt.Profile.LaneOutputs {
		return false
	}
	return analyse.Any(withTuples(s, m, b), func(u *ir.UOp) bool {
		if !analyse.IsTuple(u) {
			return false
		}
		values := u.ReduceValues()
		weighed := s.Free.Of(values[1])
		return slices.ContainsFunc(s.Free.Of(values[0]), func(r *ir.UOp) bool {
			n, constant := r.Src[0].Int()
			return constant && !slices.Contains(weighed, r) && analyse.LanesHoldQueries(n, s.Opt.Profile.Lanes)
		})
	})
}

// computed lists the folds with more points than so many that an expression reads, through
// pointwise values too: a score for each of many elements of a row. Each value is looked
// into once: the steps of a network read the one before several times.
func computed(s *state.State, u *ir.UOp, rows int64) (folds []*state.Value) {
	var reads state.Reads
	var seen ir.Visited
	state.CollectReads(u, &seen, &reads)
	met := make(map[int]bool)
	for i := 0; i < len(reads.Values); i++ { // grows
		id := reads.Values[i]
		p := s.Values[id]
		if met[id] || p.Pinned || p.Target >= 0 {
			continue
		}
		met[id] = true
		if s.IsPointwise(p) {
			state.CollectReads(p.Body, &seen, &reads)
		} else if s.Points(p.Ranges) > rows {
			folds = append(folds, p)
		}
	}
	return folds
}

// reducesOver lists the values with reduces that read m, directly or through
// pointwise values.
func reducesOver(s *state.Graph, m *state.Value) []*state.Value {
	var out []*state.Value
	seen := map[int]bool{m.ID: true}
	todo := []int{m.ID}
	for len(todo) > 0 {
		id := todo[0]
		todo = todo[1:]
		for _, user := range s.Users[id] {
			if seen[user] {
				continue
			}
			seen[user] = true
			if b := s.Values[user]; s.IsPointwise(b) {
				todo = append(todo, user)
			} else {
				out = append(out, b)
			}
		}
	}
	return out
}

// softmaxSum matches REDUCE(ADD, exp2(c*s - c*m) * g; k) and returns the tuple.
func softmaxSum(s *state.State, m *state.Value, u *ir.UOp) (tuple *ir.UOp, ok bool) {
	k := u.ReduceRange()
	list := expandExponential(s.Graph, u.Src[0])
	at := slices.IndexFunc(list, func(f *ir.UOp) bool { return f.Op == ir.OpExp2 })
	if at < 0 || slices.ContainsFunc(list[at+1:], func(f *ir.UOp) bool { return f.Op == ir.OpExp2 }) {
		return nil, false
	}
	exponent := linearForm(s.Graph, list[at].Src[0])
	maximum, c := takeMaximum(s.Graph, &exponent, m)
	if maximum == nil || !s.PlainRanges(maximum.Indices(), k) {
		return nil, false
	}
	index := append(slices.Clone(maximum.Indices()), k)
	score := s.AtIndex(append(slices.Clone(m.Ranges), m.Body.ReduceRange()), m.Body.Src[0], index)
	want := linearForm(s.Graph, score)
	want.scale(c)
	if !want.equal(exponent) {
		return nil, false
	}
	rest := slices.Delete(slices.Clone(list), at, at+1)
	g := analyse.Product(s.A, rest)
	if g == nil {
		g = s.A.Const(u.DType, 1)
	}
	if reaches(s.Graph, g, m.ID) {
		s.Record(m, false, "weight depends on the maximum")
		return nil, false
	}
	if rereads(s, m, k) {
		s.Record(m, false, "the row is stored and read twice")
		return nil, false
	}
	return s.SoftmaxTuple([]*ir.UOp{score, g}, k, s.A.Const(u.DType, c)), true
}

// rereads reports a score over a row that is short enough to go over twice: made of what has a
// buffer of its own or fewer points, those of a row or column. What costs more than an exponential to make again is stored, too.
func rereads(s *state.State, m *state.Value, k *ir.UOp) bool {
	n, constant := k.Src[0].Int()
	if !constant || n > s.Opt.Profile.RereadCap {
		return false
	}
	score := m.Body.Src[0]
	rows := s.Points(ir.WithoutRanges(s.Free.Of(score), []*ir.UOp{k}))
	return isPlain(s, score, min(max(n, rows, n*rows/4), n*rows-1))
}

// isPlain reports an expression without folds, of values without them or of few points.
func isPlain(s *state.State, u *ir.UOp, points int64) bool {
	known := make(map[int]bool)
	var plain func(u *ir.UOp) bool
	plain = func(u *ir.UOp) bool {
		var reads state.Reads
		state.CollectReads(u, new(ir.Visited), &reads)
		for _, id := range reads.Values {
			p := s.Values[id]
			if p.Pinned || known[id] || s.Points(p.Ranges) <= points {
				continue
			}
			known[id] = true
			if !s.IsPointwise(p) || !plain(p.Body) {
				return false
			}
		}
		return s.Height(u) == 0
	}
	return plain(u)
}

// expandExponential flattens a product and looks through reads of pointwise
// values that hold an EXP2 as a factor.
func expandExponential(s *state.Graph, u *ir.UOp) []*ir.UOp {
	var list []*ir.UOp
	for _, f := range analyse.Factors(u) {
		if p, ok := s.IsRead(f); ok && s.IsPointwise(p) && !p.Pinned && p.Target < 0 {
			inner := expandExponential(s, s.Instantiate(p, f.Indices()))
			if slices.ContainsFunc(inner, func(g *ir.UOp) bool { return g.Op == ir.OpExp2 }) {
				list = append(list, inner...)
				continue
			}
		}
		list = append(list, f)
	}
	return list
}

// floatForm is a linear form over float atoms, in order of first appearance.
type floatForm struct {
	terms    []floatTerm
	constant float64
}

type floatTerm struct {
	atom *ir.UOp
	coef float64
}

func (f *floatForm) add(atom *ir.UOp, coef float64) {
	for i := range f.terms {
		if f.terms[i].atom == atom {
			f.terms[i].coef += coef
			return
		}
	}
	f.terms = append(f.terms, floatTerm{atom, coef})
}

func (f *floatForm) scale(c float64) {
	for i := range f.terms {
		f.terms[i].coef *= c
	}
	f.constant *= c
}

// equal compares as multisets; coefficients may differ by rounding.
func (f *floatForm) equal(g floatForm) bool {
	near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-6*max(math.Abs(x), math.Abs(y)) }
	f.clean()
	g.clean()
	if len(f.terms) != len(g.terms) || !near(f.constant, g.constant) {
		return false
	}
	return !slices.ContainsFunc(f.terms, func(t floatTerm) bool {
		return !slices.ContainsFunc(g.terms, func(o floatTerm) bool { return o.atom == t.atom && near(o.coef, t.coef) })
	})
}

func (f *floatForm) clean() {
	f.terms = slices.DeleteFunc(slices.Clone(f.terms), func(t floatTerm) bool { return t.coef == 0 })
}

// linearForm views a float expression as a sum of atoms; reads of pointwise
// values that are sums themselves are expanded.
func linearForm(s *state.Graph, u *ir.UOp) floatForm {
	var form floatForm
	addLinear(s, &form, u, 1)
	return form
}

func addLinear(s *state.Graph, form *floatForm, u *ir.UOp, coef float64) {
	if v, ok := u.Float(); ok {
		form.constant += coef * v
		return
	}
	switch u.Op {
	case ir.OpAdd:
		addLinear(s, form, u.Src[0], coef)
		addLinear(s, form, u.Src[1], coef)
		return
	case ir.OpSub:
		addLinear(s, form, u.Src[0], coef)
		addLinear(s, form, u.Src[1], -coef)
		return
	case ir.OpNeg:
		addLinear(s, form, u.Src[0], -coef)
		return
	case ir.OpMul:
		for i, f := range u.Src {
			if v, ok := f.Float(); ok {
				addLinear(s, form, u.Src[1-i], coef*v)
				return
			}
		}
	case ir.OpLoad:
		if p, ok := s.IsRead(u); ok && s.IsPointwise(p) && !p.Pinned && p.Target < 0 && isLinear(p.Body) {
			addLinear(s, form, s.Instantiate(p, u.Indices()), coef)
			return
		}
	}
	form.add(u, coef)
}

func isLinear(u *ir.UOp) bool {
	switch u.Op {
	case ir.OpAdd, ir.OpSub, ir.OpNeg:
		return true
	case ir.OpMul:
		return u.Src[0].Op == ir.OpConst || u.Src[1].Op == ir.OpConst
	}
	return false
}

// takeMaximum removes the read of m with coefficient -c, c > 0, from a form.
func takeMaximum(s *state.Graph, form *floatForm, m *state.Value) (read *ir.UOp, c float64) {
	at := -1
	for i, t := range form.terms {
		if p, ok := s.IsRead(t.atom); ok && p == m {
			if at >= 0 {
				return nil, 0
			}
			at = i
		}
	}
	if at < 0 || form.terms[at].coef >= 0 {
		return nil, 0
	}
	read, c = form.terms[at].atom, -form.terms[at].coef
	form.terms = slices.Delete(slices.Clone(form.terms), at, at+1)
	return read, c
}

// reaches reports that an expression reads a value, also through other values.
func reaches(s *state.Graph, u *ir.UOp, id int) bool {
	seen := make(map[int]bool)
	var visit func(u *ir.UOp) bool
	visit = func(u *ir.UOp) bool {
		var r state.Reads
		state.CollectReads(u, new(ir.Visited), &r)
		for _, p := range r.Values {
			if p == id {
				return true
			}
			if !seen[p] {
				seen[p] = true
				if visit(s.Values[p].Body) {
					return true
				}
			}
		}
		return false
	}
	return visit(u)
}
