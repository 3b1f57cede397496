package lower

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/packed"
)

// lineBytes is the size of a cache line.
const lineBytes = 64

// openPrefetch emits, at the head of the loop over range i, the prefetches of
// buffers that the loop streams: one for each line that an iteration consumes,
// the plan's distance ahead. An address past the buffer's end is only a hint,
// and usually the next row's.
func (l *memory) openPrefetch(i int) {
	for _, opt := range l.Options.BufferOpts() {
		if opt.Kind != plan.PREFETCH {
			continue
		}
		for k, s := range l.streamed(opt.Slot, i) {
			if k == 0 || s.field || s.apart {
				s.once = l.Options.Has(plan.ONCE, opt.Slot)
				l.prefetchStream(s, l.Options.Buffers[opt])
			}
		}
	}
}

// stream is an access that moves along a loop: how many bytes an iteration reads. field: the
// scales of a record lie apart from its words of weights, and each is asked for where it is read.
type stream struct {
	load    *ir.UOp
	bytes   int64
	field   bool
	weights bool // words of weights, which lie together
	once    bool // past the second cache
	apart   bool // of rows far from those of the streams before: the second matrix of two that lie in one buffer
}

// streamed finds the accesses of a buffer that move along the loop just opened, all their other
// serial ranges being open, one of each field of rows that lie together.
func (l *memory) streamed(slot, i int) (list []stream) {
	if l.accesses == nil {
		l.accesses = make(map[int][]*ir.UOp)
		for _, u := range ir.Toposort(l.Sink) {
			if (u.Op == ir.OpLoad || u.Op == ir.OpField) && u.Src[0].Op == ir.OpParam {
				s := u.Src[0].Arg.(ir.ParamArg).Slot
				l.accesses[s] = append(l.accesses[s], u)
			}
		}
	}
	for _, u := range l.accesses[slot] {
		if l.Roles[i] != plan.Serial || !l.free.Of(u).Has(i) || slices.Contains(l.others, u.Src[0]) {
			continue
		}
		if _, ok := l.scopes.depthOf(l.free.Of(u)); !ok {
			continue
		}
		addr, step := l.addressAndStep(u)
		if coef := addr.form.Coef(l.Ranges[i]); coef > 0 {
			s := stream{load: u, bytes: coef * step}
			s.apart = len(list) > 0 && !slices.ContainsFunc(list, func(o stream) bool { return l.rowsTogether(o.load, u) })
			if fd := l.recordField(u); fd != nil {
				span, weights := l.format(u.Arg.(ir.FieldArg).Format).RecordSpan(fd)
				if s.field, s.weights = true, weights; slices.ContainsFunc(list, func(o stream) bool {
					return (o.load.Arg == u.Arg || weights && o.weights) && l.rowsTogether(o.load, u)
				}) {
					continue
				}
				s.bytes = min(s.bytes, span)
			}
			list = append(list, s)
		}
	}
	return list
}

// rowsTogether reports two accesses, unless they are of packed rows a constant distance apart that is more than a record's.
func (l *memory) rowsTogether(x, y *ir.UOp) bool {
	if x.Op != ir.OpField || y.Op != ir.OpField {
		return true
	}
	gap, ok := l.linear.Of(x.Src[1]).Plus(l.linear.Of(y.Src[1]), -1)
	n, constant := gap.AsConst()
	return !ok || !constant || -packed.RecordRows < n && n < packed.RecordRows
}

// recordField is the field of records that an access reads; nil where it reads something else.
func (l *memory) recordField(u *ir.UOp) *packed.Field {
	if u.Op != ir.OpField {
		return nil
	}
	arg := u.Arg.(ir.FieldArg)
	f := l.format(arg.Format)
	if l.layoutOf(f, u.Src[0]) != packed.Records {
		return nil
	}
	fd, _ := f.Field(arg.Field)
	return fd
}

func (l *memory) addressAndStep(u *ir.UOp) (*flatAddress, int64) {
	switch {
	case u.Op == ir.OpField:
		return l.fieldAddress(u), 1
	case u.Src[0].Op == ir.OpStage:
		return l.stager.readAddress(u), int64(u.DType.Size())
	}
	return l.addressOf(u), int64(u.DType.Size())
}

// early and late are how many times as far ahead lines are asked for by the second cache, and what part of the
// distance by the first, but lateBytes at least.
const (
	early     = 2
	late      = 8
	lateBytes = 1024
)

// asked is a distance at which a stream's lines are asked for, and the first cache that shall hold them.
type asked struct{ ahead, level int64 }

// asks are the distances of a stream. A loop that makes floats of codes falls behind lines that the first cache waits for;
// one of dots of bytes has little else to do, and gains nothing.
func (l *memory) asks(s stream, ahead int64, rows analyse.RangeSet) []asked {
	if s.once {
		return []asked{{ahead, program.FirstLevelAlone}}
	}
	dots := func(u *ir.UOp) bool { return u.Op == ir.OpReduce && u.DType == ir.I32 }
	if near := max(ahead/late, lateBytes); l.Desc.PrefetchTwice && s.field && rows.Empty() && near < ahead && !analyse.Any(l.Sink, dots) {
		return []asked{{early * ahead, program.SecondLevel}, {near, 0}}
	}
	return []asked{{ahead, 0}}
}

// prefetchStream prefetches the lines of which an iteration reads so many bytes.
func (l *memory) prefetchStream(s stream, ahead int64) {
	load, bytes := s.load, s.bytes
	addr, step := l.addressAndStep(load)
	// Copies that move the address by less than the stream's own length belong
	// to it; those that move it further (rows) are streams of their own.
	rows := analyse.RangeSet{}
	for _, t := range addr.form.Terms {
		for _, i := range l.free.Of(t.Atom).Meet(l.copies).List() {
			if t.Coef*step >= bytes {
				rows.Add(i)
			}
		}
	}
	// With several rows at once the end of one runs into the next, which is being
	// read: what comes next in a stream lies in the next tile of rows.
	if !rows.Empty() {
		tile := int64(1)
		for _, t := range addr.form.Terms {
			for _, i := range l.free.Of(t.Atom).Meet(rows).List() {
				tile = max(tile, t.Coef*step*l.extent[i])
			}
		}
		ahead = (ahead + tile - 1) / tile * tile
	}
	for _, at := range l.loops.combos(rows) {
		for _, i := range l.free.Of(load).Meet(l.vector).Minus(rows).List() {
			at[i] = 0
		}
		p := l.placeOf(l.base(load.Src[0]), addr, step, at)
		lines := min((bytes+lineBytes-1)/lineBytes, int64(l.Options.Program.Of(program.Lines)))
		size := int64(p.ptr.Type.Elem.Size())
		for _, ask := range l.asks(s, ahead, rows) {
			for k := range lines {
				l.b.Prefetch(l.b.PtrAdd(p.ptr, l.b.Index((ask.ahead+k*lineBytes)/size)), ask.level)
			}
		}
	}
}
