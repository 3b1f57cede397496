package cuda

import (
	"fmt"
	"strings"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/render/gpu"
)

// Memory instructions. A contiguous access is cut into the widest pieces that
// its proven alignment allows: 16, 8, 4 bytes in one access, then halves and
// bytes put together.

func (r *renderer) memory(in *program.Instr) error {
	switch in.Op {
	case program.Alloca:
		return r.alloca(in)
	case program.Load:
		r.load(in)
	case program.Guarded:
		return r.guarded(in)
	case program.Store:
		p, v := in.Args[0], in.Args[1]
		if a := r.values[p.ID].address; a.array != "" {
			r.storeArray(v, a)
		} else {
			r.storeAt(storeFunction(p, in.Cache), v, a, in.Align)
		}
	case program.Gather:
		r.gather(in)
	case program.Scatter:
		r.scatter(in)
	case program.Prefetch:
		if p := in.Args[0]; p.Type.Space == program.GlobalSpace {
			r.line("%s(%s);", r.call("prefetch_l2"), r.values[p.ID].address)
		}
	}
	return nil
}

// policy is how a load is spelled.
type policy struct {
	function string // __ldg, __ldcg; empty: through a pointer
	helper   string // load_once or load_last, of unsigned words, instead
}

// loadPolicy chooses it.
//
// Read-only data goes through __ldg, which the compiler may move over anything.
// In a program that waits for the previous grid that holds before the wait (the
// rule for loads there) but after it only where the program says so: the
// previous grid may have written the rest.
func (r *renderer) loadPolicy(p *program.Value, cache program.Cache) policy {
	switch p.Type.Space {
	case program.ConstSpace:
		return policy{function: "__ldg"}
	case program.GlobalSpace:
	default:
		return policy{}
	}
	buffer := r.access[p]
	readOnly := buffer != nil && buffer.Read && !buffer.Write
	switch {
	case cache == program.CacheL2:
		return policy{function: "__ldcg"}
	case cache == program.CacheStream && readOnly:
		return policy{helper: "load_once"}
	case cache == program.CacheStream:
		return policy{helper: "load_last"}
	case readOnly && (cache == program.CacheConst || !r.waited):
		return policy{function: "__ldg"}
	}
	return policy{}
}

// read is the expression of a load of one C type of some bytes.
func (r *renderer) read(how policy, a *address, name string, bytes int) string {
	switch {
	case how.helper != "":
		return fmt.Sprintf("%s(%s)", r.call(fmt.Sprintf("%s%d", how.helper, bytes)), a)
	case how.function != "":
		return fmt.Sprintf("%s(%s)", how.function, a.pointer(name, true))
	}
	return "*" + a.pointer(name, true)
}

func (r *renderer) load(in *program.Instr) {
	p := in.Args[0]
	a := r.values[p.ID].address
	if a.array == "" {
		r.setStorage(in.Result, r.loaded(in.Result.Type, r.loadPolicy(p, in.Cache), a, in.Align))
		return
	}
	t := r.arrayType(in.Result.Type.Elem)
	lanes := make([]operand, in.Result.Type.Lanes)
	for i := range lanes { // copies: a later store may change the array
		lanes[i] = r.let(t, "%s[%d]", a.array, a.index+int64(i))
	}
	r.set(in.Result, lanes)
}

// loaded loads a value of a type: its words or lanes.
func (r *renderer) loaded(t program.Type, how policy, a *address, align int) []operand {
	size := t.Elem.Size()
	ct := r.arrayType(t.Elem)
	switch {
	case t.Lanes == 1 && size <= 2 && align >= size:
		return []operand{r.loadNarrow(how, t.Elem, a)}
	case size >= 4 && align >= size && how.helper == "":
		return r.loadTyped(how, ct, a, t.Lanes, align)
	}
	words := r.loadWords(how, a, size*t.Lanes, align)
	if isPacked(t) {
		return words
	}
	lanes := make([]operand, t.Lanes)
	for i := range lanes {
		switch {
		case t.Elem == ir.Bool:
			lanes[i] = r.let(boolean, "%s != 0", r.unpack(words, ir.U8, i).text())
		case size <= 2:
			lanes[i] = r.unpack(words, t.Elem, i)
		case size == 4:
			lanes[i] = r.fromWord(ct, words[i])
		default:
			lanes[i] = r.fromWords(ct, words[2*i], words[2*i+1])
		}
	}
	return lanes
}

// fromWord is a word's bits as a 32-bit type.
func (r *renderer) fromWord(t ctype, w operand) operand {
	switch {
	case t == w.t:
		return w
	case t == float32Type:
		return r.let(t, "__uint_as_float(%s)", w.text())
	}
	return r.let(t, "%s", w.as(t))
}

func (r *renderer) fromWords(t ctype, lo, hi operand) operand {
	bits := fmt.Sprintf("(unsigned long long)%s << 32 | %s", hi.text(), lo.text())
	switch t {
	case float64Type:
		return r.let(t, "__longlong_as_double((long long)(%s))", bits)
	case int64Type:
		return r.let(t, "(long long)(%s)", bits)
	}
	return r.let(t, "%s", bits)
}

// narrowNames are the types of accesses of one or two bytes.
func narrowName(d ir.DType) string {
	switch {
	case d.Size() == 1 && isSignExtended(d):
		return "signed char"
	case d.Size() == 1:
		return "unsigned char"
	case isSignExtended(d):
		return "short"
	}
	return "unsigned short"
}

// loadNarrow loads one element of 1 or 2 bytes, extended.
func (r *renderer) loadNarrow(how policy, d ir.DType, a *address) operand {
	x := r.read(how, a, narrowName(d), d.Size())
	switch {
	case d == ir.Bool:
		return r.let(boolean, "%s != 0", x)
	case how.helper != "":
		return r.extend(d, r.let(uint32Type, "%s", x))
	case isSignExtended(d):
		return r.let(int32Type, "%s", x)
	}
	return r.let(uint32Type, "%s", x)
}

// loadTyped loads elements of 4 or 8 bytes by their own type, aligned to that.
func (r *renderer) loadTyped(how policy, t ctype, a *address, lanes, align int) []operand {
	size := t.bits() / 8
	var out []operand
	for _, c := range gpu.Pieces(size*lanes, align) {
		n := c.Width / size
		if n == 1 {
			out = append(out, r.let(t, "%s", r.read(how, a.plus(int64(c.Off)), t.String(), c.Width)))
			continue
		}
		out = append(out, r.vector(t, n, r.read(how, a.plus(int64(c.Off)), vectorName(t, n), c.Width))...)
	}
	return out
}

func vectorName(t ctype, n int) string { return fmt.Sprintf("%s%d", ctypes[t].vector, n) }

// vector declares a vector; its elements are operands.
func (r *renderer) vector(t ctype, n int, expression string) []operand {
	name := r.name("q")
	r.line("%s %s = %s;", vectorName(t, n), name, expression)
	out := make([]operand, n)
	for i := range out {
		out[i] = operand{name: fmt.Sprintf("%s.%c", name, "xyzw"[i]), t: t}
	}
	return out
}

// loadWords loads n bytes as 32-bit words; bytes past n are 0.
func (r *renderer) loadWords(how policy, a *address, n, align int) []operand {
	words := make([]operand, (n+3)/4)
	parts := make([][]string, len(words))
	for _, c := range gpu.Pieces(n, align) {
		at := a.plus(int64(c.Off))
		switch {
		case c.Width > 4:
			copy(words[c.Off/4:], r.vector(uint32Type, c.Width/4, r.read(how, at, vectorName(uint32Type, c.Width/4), c.Width)))
		case c.Width == 4:
			words[c.Off/4] = r.let(uint32Type, "%s", r.read(how, at, "unsigned", 4))
		default:
			name := map[int]string{1: "unsigned char", 2: "unsigned short"}[c.Width]
			x := r.let(uint32Type, "%s", r.read(how, at, name, c.Width)).text()
			if c.Off%4 != 0 {
				x += fmt.Sprintf(" << %d", 8*(c.Off%4))
			}
			parts[c.Off/4] = append(parts[c.Off/4], x)
		}
	}
	for i, list := range parts {
		if list != nil {
			words[i] = r.let(uint32Type, "%s", strings.Join(list, " | "))
		}
	}
	return words
}

// guarded loads inside of an if, over the other value.
func (r *renderer) guarded(in *program.Instr) error {
	guard, p, other := in.Args[0], in.Args[1], in.Args[2]
	a := r.values[p.ID].address
	if a.array != "" {
		return fmt.Errorf("a guarded load of an array without memory")
	}
	to := r.fresh(in.Result, other)
	r.begin("if (%s)", r.lane(guard, 0).text())
	for i, o := range r.loaded(in.Result.Type, r.loadPolicy(p, in.Cache), a, in.Align) {
		r.line("%s = %s;", to[i].name, o.as(to[i].t))
	}
	r.end("}")
	return nil
}

// storeFunction is the store of a policy; empty: through a pointer.
func storeFunction(p *program.Value, cache program.Cache) string {
	if p.Type.Space == program.GlobalSpace {
		switch cache {
		case program.CacheStream:
			return "__stcs"
		case program.CacheL2:
			return "__stcg"
		}
	}
	return ""
}

// write prints a store of one C type.
func (r *renderer) write(function string, a *address, name, value string) {
	if function != "" {
		r.line("%s(%s, %s);", function, a.pointer(name, false), value)
		return
	}
	r.line("*%s = %s;", a.pointer(name, false), value)
}

func (r *renderer) storeAt(function string, v *program.Value, a *address, align int) {
	t := v.Type
	size := t.Elem.Size()
	switch {
	case t.Lanes == 1 && size <= 2 && align >= size:
		name := narrowName(t.Elem)
		r.write(function, a, name, fmt.Sprintf("(%s)%s", name, r.lane(v, 0).text()))
	case size >= 4 && align >= size:
		r.storeTyped(function, r.arrayType(t.Elem), v, a, align)
	default:
		r.storeWords(function, r.storedWords(v), a, size*t.Lanes, align)
	}
}

// storeTyped stores elements of 4 or 8 bytes by their own type.
func (r *renderer) storeTyped(function string, t ctype, v *program.Value, a *address, align int) {
	size := t.bits() / 8
	for _, c := range gpu.Pieces(size*v.Type.Lanes, align) {
		list := make([]string, c.Width/size)
		for i := range list {
			list[i] = r.lane(v, c.Off/size+i).as(t)
		}
		at := a.plus(int64(c.Off))
		if len(list) == 1 {
			r.write(function, at, t.String(), list[0])
			continue
		}
		name := vectorName(t, len(list))
		r.write(function, at, name, fmt.Sprintf("make_%s(%s)", name, strings.Join(list, ", ")))
	}
}

func (r *renderer) storeWords(function string, words []operand, a *address, n, align int) {
	for _, c := range gpu.Pieces(n, align) {
		at := a.plus(int64(c.Off))
		w := words[c.Off/4]
		switch {
		case c.Width > 4:
			list := make([]string, c.Width/4)
			for i := range list {
				list[i] = words[c.Off/4+i].text()
			}
			name := vectorName(uint32Type, len(list))
			r.write(function, at, name, fmt.Sprintf("make_%s(%s)", name, strings.Join(list, ", ")))
		case c.Width == 4:
			r.write(function, at, "unsigned", w.text())
		default:
			name := map[int]string{1: "unsigned char", 2: "unsigned short"}[c.Width]
			if c.Off%4 == 0 {
				r.write(function, at, name, fmt.Sprintf("(%s)%s", name, w.text()))
			} else {
				r.write(function, at, name, fmt.Sprintf("(%s)(%s >> %d)", name, w.text(), 8*(c.Off%4)))
			}
		}
	}
}

// storedWords is a value as 32-bit words in memory order.
func (r *renderer) storedWords(v *program.Value) []operand {
	t := v.Type
	if isPacked(t) {
		return r.words(v)
	}
	var words []operand
	for i := range t.Lanes {
		o := r.lane(v, i)
		switch {
		case t.Elem.Size() == 8:
			whole := o.as(int64Type)
			if o.t == float64Type {
				whole = fmt.Sprintf("__double_as_longlong(%s)", o.text())
			}
			words = append(words, r.let(uint32Type, "(unsigned)%s", whole), r.let(uint32Type, "(unsigned)(%s >> 32)", whole))
		case t.Elem == ir.F32:
			words = append(words, r.wordOf(o))
		default:
			words = append(words, r.let(uint32Type, "%s", o.as(uint32Type)))
		}
	}
	if t.Elem != ir.Bool {
		return words
	}
	packed := make([]operand, (t.Lanes+3)/4)
	for i := range packed {
		packed[i] = r.pack(words, ir.U8, i)
	}
	return packed
}

// wordOf is the bits of a 32-bit lane.
func (r *renderer) wordOf(o operand) operand {
	switch {
	case o.literal():
		return operand{bits: o.bits & 0xffffffff, t: uint32Type}
	case o.t == float32Type:
		return r.let(uint32Type, "__float_as_uint(%s)", o.name)
	case o.t == uint32Type:
		return o
	}
	return r.let(uint32Type, "%s", o.as(uint32Type))
}

func (r *renderer) storeArray(v *program.Value, a *address) {
	t := r.arrayType(v.Type.Elem)
	for i := range v.Type.Lanes {
		r.line("%s[%d] = %s;", a.array, a.index+int64(i), r.lane(v, i).as(t))
	}
}
