package schedule

import (
	"math"
	"slices"

	"tgc/ir"
)

// R5, cascade: a maximum m over t, and sums over t of exp2(c*(s-m)) times
// anything that does not depend on m, become one tuple reduce (online softmax,
// Milakov and Gimelshein 2018; with a weighted sum it is flash attention, Dao
// et al. 2022). Component 0 is the running maximum of s; component i is the sum
// of exp2(c*(s - component 0)) * g_i. c stands in the lambda, not in the score,
// so that differences are taken before they are scaled.
//
// Every value gets a tuple with the components that it needs, and a maximum
// alone stays a plain REDUCE; when values are joined (R5p), tuples and maxima
// of one score become one node.

// cascade looks for sums that hang on the maximum of value m.
func (s *scheduler) cascade(m *value) {
	if m.body.Op != ir.OpReduce || m.body.Arg.(ir.ReduceArg).Op != ir.OpMax || !m.body.DType.IsFloat() {
		return
	}
	for _, b := range s.reducesOver(m) {
		body := s.rewriteReduces(b.body, func(u *ir.UOp) *ir.UOp {
			if u.Arg.(ir.ReduceArg).Op != ir.OpAdd || u.ReduceRange().Src[0] != m.body.ReduceRange().Src[0] {
				return u
			}
			tuple, ok := s.softmaxSum(m, u)
			if !ok {
				return u
			}
			return s.a.Proj(tuple, 1)
		})
		if body != b.body {
			b.body = body
			s.record(Cascade, b, true, "sum of exponentials over the range of a maximum", Number{"extent", s.points(binderRanges(m.body))})
		}
	}
}

// reducesOver lists the values with reduces that read m, directly or through
// pointwise values.
func (s *scheduler) reducesOver(m *value) []*value {
	var out []*value
	seen := map[int]bool{m.id: true}
	todo := []int{m.id}
	for len(todo) > 0 {
		id := todo[0]
		todo = todo[1:]
		for _, user := range s.users[id] {
			if seen[user] {
				continue
			}
			seen[user] = true
			if b := s.values[user]; s.isPointwise(b) {
				todo = append(todo, user)
			} else {
				out = append(out, b)
			}
		}
	}
	return out
}

// softmaxSum matches REDUCE(ADD, exp2(c*s - c*m) * g; k) and returns the tuple.
func (s *scheduler) softmaxSum(m *value, u *ir.UOp) (tuple *ir.UOp, ok bool) {
	k := u.ReduceRange()
	list := s.expandExponential(u.Src[0])
	at := slices.IndexFunc(list, func(f *ir.UOp) bool { return f.Op == ir.OpExp2 })
	if at < 0 || slices.ContainsFunc(list[at+1:], func(f *ir.UOp) bool { return f.Op == ir.OpExp2 }) {
		return nil, false
	}
	exponent := s.linearForm(list[at].Src[0])
	maximum, c := s.takeMaximum(&exponent, m)
	if maximum == nil || !s.plainRanges(maximum.Indices(), k) {
		return nil, false
	}
	index := append(slices.Clone(maximum.Indices()), k)
	score := s.atIndex(append(slices.Clone(m.ranges), m.body.ReduceRange()), m.body.Src[0], index)
	want := s.linearForm(score)
	want.scale(c)
	if !want.equal(exponent) {
		return nil, false
	}
	rest := slices.Delete(slices.Clone(list), at, at+1)
	g := s.product(rest)
	if g == nil {
		g = s.a.Const(u.DType, 1)
	}
	if s.reaches(g, m.id) {
		s.record(Cascade, m, false, "weight depends on the maximum")
		return nil, false
	}
	if s.rereads(m.body.Src[0], k) {
		s.record(Cascade, m, false, "the row is stored and read twice")
		return nil, false
	}
	return s.softmaxTuple([]*ir.UOp{score, g}, k, s.a.Const(u.DType, c)), true
}

// rereads reports a score with a buffer of its own (CONTIGUOUS) over a row that
// is short enough to read twice.
func (s *scheduler) rereads(score, k *ir.UOp) bool {
	n, constant := k.Src[0].Int()
	if !constant || n > s.opt.Profile.RereadCap || score.Op != ir.OpLoad {
		return false
	}
	p, ok := s.isRead(score)
	return ok && p.pinned
}

// plainRanges reports distinct ranges other than k.
func (s *scheduler) plainRanges(index []*ir.UOp, k *ir.UOp) bool {
	for i, x := range index {
		if x.Op != ir.OpRange || x == k || slices.Contains(index[:i], x) {
			return false
		}
	}
	return true
}

// expandExponential flattens a product and looks through reads of pointwise
// values that hold an EXP2 as a factor.
func (s *scheduler) expandExponential(u *ir.UOp) []*ir.UOp {
	var list []*ir.UOp
	for _, f := range factors(u) {
		if p, ok := s.isRead(f); ok && s.isPointwise(p) && !p.pinned && p.target < 0 {
			inner := s.expandExponential(s.instantiate(p, f.Indices()))
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
	for _, t := range f.terms {
		if !slices.ContainsFunc(g.terms, func(o floatTerm) bool { return o.atom == t.atom && near(o.coef, t.coef) }) {
			return false
		}
	}
	return true
}

func (f *floatForm) clean() {
	f.terms = slices.DeleteFunc(slices.Clone(f.terms), func(t floatTerm) bool { return t.coef == 0 })
}

// linearForm views a float expression as a sum of atoms; reads of pointwise
// values that are sums themselves are expanded.
func (s *scheduler) linearForm(u *ir.UOp) floatForm {
	var form floatForm
	s.addLinear(&form, u, 1)
	return form
}

func (s *scheduler) addLinear(form *floatForm, u *ir.UOp, coef float64) {
	if v, ok := u.Float(); ok {
		form.constant += coef * v
		return
	}
	switch u.Op {
	case ir.OpAdd:
		s.addLinear(form, u.Src[0], coef)
		s.addLinear(form, u.Src[1], coef)
		return
	case ir.OpSub:
		s.addLinear(form, u.Src[0], coef)
		s.addLinear(form, u.Src[1], -coef)
		return
	case ir.OpNeg:
		s.addLinear(form, u.Src[0], -coef)
		return
	case ir.OpMul:
		for i, f := range u.Src {
			if v, ok := f.Float(); ok {
				s.addLinear(form, u.Src[1-i], coef*v)
				return
			}
		}
	case ir.OpLoad:
		if p, ok := s.isRead(u); ok && s.isPointwise(p) && !p.pinned && p.target < 0 && isLinear(p.body) {
			s.addLinear(form, s.instantiate(p, u.Indices()), coef)
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
func (s *scheduler) takeMaximum(form *floatForm, m *value) (read *ir.UOp, c float64) {
	at := -1
	for i, t := range form.terms {
		if p, ok := s.isRead(t.atom); ok && p == m {
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
func (s *scheduler) reaches(u *ir.UOp, id int) bool {
	seen := make(map[int]bool)
	var visit func(u *ir.UOp) bool
	visit = func(u *ir.UOp) bool {
		var r reads
		collectReads(u, new(ir.Visited), &r)
		for _, p := range r.values {
			if p == id {
				return true
			}
			if !seen[p] {
				seen[p] = true
				if visit(s.values[p].body) {
					return true
				}
			}
		}
		return false
	}
	return visit(u)
}

// softmaxTuple is the tuple reduce over one range of a score and its weights.
func (s *scheduler) softmaxTuple(values []*ir.UOp, k, c *ir.UOp) *ir.UOp {
	identity, combine := s.a.SoftmaxLambda(values[0].DType, len(values), c)
	return s.closeReduce(s.a.TupleReduce(values, k, identity, combine))
}

// isMaximum reports a plain maximum of floats.
func isMaximum(u *ir.UOp) bool {
	return u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op == ir.OpMax && u.DType.IsFloat()
}

// tupleGroup collects the tuples and maxima of one score over one range.
type tupleGroup struct {
	score, k *ir.UOp
	c        *ir.UOp // nil while only maxima are known
	values   []*ir.UOp
	members  []*ir.UOp
}

// mergeTuples makes softmax tuples (and maxima) with one score and one range a
// single node that has all their components.
func (s *scheduler) mergeTuples(roots []*ir.UOp) []*ir.UOp {
	nodes := s.binding(roots)
	projections := make(map[*ir.UOp]*ir.UOp)
	for _, group := range s.tupleGroups(nodes) {
		if group.c == nil || len(group.members) < 2 {
			continue
		}
		tuple := s.softmaxTuple(group.values, group.k, group.c) // the range keeps its name
		for _, u := range nodes {
			switch {
			case u.Op == ir.OpReduce && isMaximum(u) && slices.Contains(group.members, u):
				projections[u] = s.a.Proj(tuple, 0)
			case u.Op == ir.OpProj && slices.Contains(group.members, u.Src[0]):
				i := int(u.Arg.(ir.IntArg))
				if i > 0 {
					i = 1 + slices.Index(group.values[1:], u.Src[0].Src[i])
				}
				projections[u] = s.a.Proj(tuple, i)
			}
		}
	}
	if len(projections) == 0 {
		return roots
	}
	return s.rename(roots, projections)
}

// binding lists the nodes that close a range somewhere below, sources first.
func (s *scheduler) binding(roots []*ir.UOp) (list []*ir.UOp) {
	var seen ir.Visited
	var visit func(u *ir.UOp)
	visit = func(u *ir.UOp) {
		if s.height(u) == 0 || !seen.Add(u) {
			return
		}
		for _, src := range u.Src {
			visit(src)
		}
		list = append(list, u)
	}
	for _, r := range roots {
		visit(r)
	}
	return list
}

func (s *scheduler) tupleGroups(nodes []*ir.UOp) []*tupleGroup {
	var groups []*tupleGroup
	for _, u := range nodes {
		c, softmax := s.a.IsSoftmax(u)
		if !softmax && !isMaximum(u) {
			continue
		}
		at := slices.IndexFunc(groups, func(g *tupleGroup) bool {
			return g.score == u.Src[0] && g.k == u.ReduceRange() && (g.c == nil || !softmax || g.c == c)
		})
		if at < 0 {
			at = len(groups)
			groups = append(groups, &tupleGroup{score: u.Src[0], k: u.ReduceRange(), values: []*ir.UOp{u.Src[0]}})
		}
		g := groups[at]
		g.members = append(g.members, u)
		if !softmax {
			continue
		}
		g.c = c
		for _, v := range u.ReduceValues()[1:] {
			if !slices.Contains(g.values[1:], v) {
				g.values = append(g.values, v)
			}
		}
	}
	return groups
}

// pruneTuples drops the components of softmax tuples that nothing projects. A
// tuple merged inside a stage and outside it has parts that only one place
// uses, and outside they would name ranges that nothing there closes. Ranges
// have their final names here: before, both places may be one node.
func (s *scheduler) pruneTuples(roots []*ir.UOp) []*ir.UOp {
	for {
		used := make(map[*ir.UOp][]int)
		nodes := ir.Toposort(roots...)
		for _, u := range nodes {
			if u.Op == ir.OpProj {
				i := int(u.Arg.(ir.IntArg))
				if !slices.Contains(used[u.Src[0]], i) {
					used[u.Src[0]] = append(used[u.Src[0]], i)
				}
			}
		}
		projections := make(map[*ir.UOp]*ir.UOp)
		for _, u := range nodes {
			if u.Op != ir.OpProj {
				continue
			}
			if p := s.prunedProjection(u, used[u.Src[0]]); p != nil {
				projections[u] = p
			}
		}
		if len(projections) == 0 {
			return roots
		}
		roots = s.rename(roots, projections)
	}
}

// prunedProjection is a projection of the tuple that has only the used
// components and the maximum; nil when nothing falls away.
func (s *scheduler) prunedProjection(u *ir.UOp, used []int) *ir.UOp {
	tuple := u.Src[0]
	c, ok := s.a.IsSoftmax(tuple)
	if !ok {
		return nil
	}
	values := tuple.ReduceValues()
	kept, at := values[:1:1], 0
	for i := 1; i < len(values); i++ {
		if slices.Contains(used, i) {
			kept = append(kept, values[i])
		}
		if i == int(u.Arg.(ir.IntArg)) {
			at = len(kept) - 1
		}
	}
	switch len(kept) {
	case len(values):
		return nil
	case 1:
		return s.a.Reduce(ir.OpMax, values[0], tuple.ReduceRange())
	}
	identity, combine := s.a.SoftmaxLambda(tuple.DType, len(kept), c)
	return s.a.Proj(s.a.TupleReduce(kept, tuple.ReduceRange(), identity, combine), at)
}
