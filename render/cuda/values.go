package cuda

import (
	"fmt"
	"strconv"

	"tgc/ir"
	"tgc/ir/program"
)

// held says where a value lives. A pointer has an address. A vector of narrow
// elements has words, lanes, or both; every other value has lanes.
//
// A lane of 1 or 2 bytes is an int or unsigned with the element's value (of a
// float: its bits). Words are packed little-endian; bytes past the last lane
// are undefined.
type held struct {
	lanes   []operand
	words   []operand
	address *address
}

// isPacked reports a vector of narrow elements.
func isPacked(t program.Type) bool {
	return !t.Ptr && t.Lanes > 1 && t.Elem != ir.Bool && t.Elem.Size() <= 2
}

// wordsOf is the number of words of a packed vector.
func wordsOf(t program.Type) int { return (t.Lanes*t.Elem.Size() + 3) / 4 }

// narrow reports an I64 value that is held in 32 bits.
func (r *renderer) narrow(v *program.Value) bool {
	b, known := r.bounds[v]
	return known && v.Type.Elem == ir.I64 && b.Fits32()
}

func (r *renderer) set(v *program.Value, lanes []operand) {
	r.values[v.ID] = &held{lanes: lanes}
}

func (r *renderer) setWords(v *program.Value, words []operand) {
	r.values[v.ID] = &held{words: words}
}

// setStorage is set or setWords, whichever v's type wants.
func (r *renderer) setStorage(v *program.Value, parts []operand) {
	if isPacked(v.Type) {
		r.setWords(v, parts)
	} else {
		r.set(v, parts)
	}
}

// name makes a new variable's name.
func (r *renderer) name(prefix string) string {
	n := r.counts[prefix]
	r.counts[prefix]++
	return prefix + strconv.Itoa(n)
}

// let declares a variable with its value.
func (r *renderer) let(t ctype, format string, args ...any) operand {
	o := operand{name: r.name(ctypes[t].prefix), t: t}
	r.line("%s %s = %s;", t, o.name, fmt.Sprintf(format, args...))
	return o
}

// declare declares a variable that is assigned later.
func (r *renderer) declare(t ctype) operand {
	o := operand{name: r.name(ctypes[t].prefix), t: t}
	r.line("%s %s;", t, o.name)
	return o
}

// lane is one lane, in the type of its value.
func (r *renderer) lane(v *program.Value, i int) operand {
	h := r.values[v.ID]
	if h.lanes != nil {
		return h.lanes[i]
	}
	return r.scopes.Once(fmt.Sprintf("lane %d %d", v.ID, i), func() operand { return r.unpack(h.words, v.Type.Elem, i) })
}

// unpack takes element i out of packed words.
func (r *renderer) unpack(words []operand, d ir.DType, i int) operand {
	bits := d.Bits()
	per := 32 / bits
	w, at := words[i/per], i%per*bits
	if w.literal() {
		return r.extend(d, operand{bits: w.bits >> at, t: uint32Type})
	}
	shifted := w.text()
	if at > 0 {
		shifted = fmt.Sprintf("(%s >> %d)", w.text(), at)
	}
	if isSignExtended(d) {
		return r.let(int32Type, "%s%s", narrowCasts[d.Size()], shifted)
	}
	if at+bits == 32 {
		return r.let(uint32Type, "%s >> %d", w.text(), at)
	}
	return r.let(uint32Type, "%s & %s", shifted, hex(1<<bits-1)+"u")
}

// narrowCasts sign-extend the low bits of an integer, by bytes.
var narrowCasts = map[int]string{1: "(signed char)", 2: "(short)"}

func isSignExtended(d ir.DType) bool { return d.IsSigned() && !d.IsFloat() }

// extend is the low bits of an integer as a lane of a narrow dtype.
func (r *renderer) extend(d ir.DType, o operand) operand {
	mask := uint64(1)<<d.Bits() - 1
	switch shift := 64 - d.Bits(); {
	case o.literal() && isSignExtended(d):
		return operand{bits: uint64(int64(o.bits<<shift) >> shift), t: int32Type}
	case o.literal():
		return operand{bits: o.bits & mask, t: uint32Type}
	case isSignExtended(d):
		return r.let(int32Type, "%s%s", narrowCasts[d.Size()], o.text())
	}
	return r.let(uint32Type, "%s & %su", o.as(uint32Type), hex(mask))
}

// words are the packed words of a narrow vector.
func (r *renderer) words(v *program.Value) []operand {
	h := r.values[v.ID]
	if h.words != nil {
		return h.words
	}
	words := make([]operand, wordsOf(v.Type))
	for i := range words {
		words[i] = r.scopes.Once(fmt.Sprintf("word %d %d", v.ID, i), func() operand { return r.pack(h.lanes, v.Type.Elem, i) })
	}
	return words
}

// pack makes word i of lanes; missing lanes are 0.
func (r *renderer) pack(lanes []operand, d ir.DType, i int) operand {
	per := 4 / d.Size()
	part := make([]operand, per)
	literals := true
	bits := uint64(0)
	for k := range part {
		part[k].t = uint32Type
		if at := i*per + k; at < len(lanes) {
			part[k] = lanes[at]
		}
		literals = literals && part[k].literal()
		bits |= part[k].bits & (1<<d.Bits() - 1) << (k * d.Bits())
	}
	switch {
	case literals:
		return operand{bits: bits, t: uint32Type}
	case per == 2:
		return r.permute(part[0], part[1], 0x5410)
	case part[0] == part[1] && part[0] == part[2] && part[0] == part[3]:
		return r.permute(part[0], operand{}, 0)
	}
	return r.permute(r.permute(part[0], part[1], 0x0040), r.permute(part[2], part[3], 0x0040), 0x5410)
}

// permute picks four bytes out of eight, one per nibble of the selector.
func (r *renderer) permute(a, b operand, selector int) operand {
	return r.let(uint32Type, "__byte_perm(%s, %s, 0x%04x)", a.as(uint32Type), b.as(uint32Type), selector)
}

// storage are the variables of a value as its whole: words of a packed vector,
// else lanes; and their type.
func (r *renderer) storage(v *program.Value) ([]operand, ctype) {
	if isPacked(v.Type) {
		return r.words(v), uint32Type
	}
	out := make([]operand, v.Type.Lanes)
	for i := range out {
		out[i] = r.lane(v, i)
	}
	return out, r.typeOf(v)
}

// fresh gives v variables of its own that start as `from` does.
func (r *renderer) fresh(v, from *program.Value) []operand {
	source, _ := r.storage(from)
	out := make([]operand, len(source))
	t := r.storageType(v)
	for i := range out {
		out[i] = r.let(t, "%s", source[i].as(t))
	}
	r.setStorage(v, out)
	return out
}

func (r *renderer) storageType(v *program.Value) ctype {
	if isPacked(v.Type) {
		return uint32Type
	}
	return r.typeOf(v)
}
