package cuda

import (
	"fmt"
	"strconv"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/render/gpu"
)

// name makes a new variable's name.
func (r *printer) name(prefix string) string {
	n := r.counts[prefix]
	r.counts[prefix]++
	return prefix + strconv.Itoa(n)
}

// let declares a variable with its value.
func (r *printer) let(t gpu.Type, format string, args ...any) operand {
	o := operand{Name: r.name(types[t].prefix), Type: t}
	r.line("%s %s = %s;", typeName(t), o.Name, fmt.Sprintf(format, args...))
	return o
}

// Declare declares a variable that is assigned later.
func (r *printer) Declare(t gpu.Type) operand {
	o := operand{Name: r.name(types[t].prefix), Type: t}
	r.line("%s %s;", typeName(t), o.Name)
	return o
}

// Array declares an array, whose elements stay in registers.
func (r *printer) Array(t gpu.Type, n int64) []operand {
	name := r.name("r")
	r.line("%s %s[%d];", typeName(t), name, n)
	out := make([]operand, n)
	for i := range out {
		out[i] = operand{Name: fmt.Sprintf("%s[%d]", name, i), Type: t}
	}
	return out
}

// vector declares a vector; its elements are operands.
func (r *printer) vector(t gpu.Type, n int, expression string) []operand {
	name := r.name("q")
	r.line("%s %s = %s;", vectorName(t, n), name, expression)
	return lists.Make(n, func(i int) operand { return operand{Name: fmt.Sprintf("%s.%c", name, "xyzw"[i]), Type: t} })
}

// Use is o: expressions convert.
func (r *printer) Use(o operand, _ gpu.Type) operand { return o }

// Hold converts.
func (r *printer) Hold(o operand, t gpu.Type) operand {
	switch {
	case o.Type == t:
	case o.Literal():
		o.Type = t
	default:
		return r.let(t, "%s", as(o, t))
	}
	return o
}

// Variable is o: an expression may be a literal.
func (r *printer) Variable(o operand, _ gpu.Type) operand { return o }

// Copy declares a variable with the value of another.
func (r *printer) Copy(o operand) operand { return r.let(o.Type, "%s", o.Name) }

// Move assigns.
func (r *printer) Move(to, from operand) { r.line("%s = %s;", to.Name, as(from, to.Type)) }

// wordOps are operators of words.
var wordOps = map[ir.Op]string{
	ir.OpAnd: "&", ir.OpOr: "|", ir.OpXor: "^", ir.OpAdd: "+", ir.OpSub: "-", ir.OpMul: "*", ir.OpShl: "<<", ir.OpShr: ">>",
}

// Word is an expression. What is inside of another operator is in parentheses,
// but shifts, which bind closer.
func (r *printer) Word(op ir.Op, x ...operand) operand {
	inner := func(o operand) string {
		if o.Op == ir.OpInvalid || o.Op == op || o.Op == ir.OpShl || o.Op == ir.OpShr {
			return text(o)
		}
		return "(" + text(o) + ")"
	}
	o := operand{Op: op, Type: gpu.U32}
	if op == ir.OpNot {
		o.Name = "~" + inner(x[0])
	} else {
		o.Name = inner(x[0]) + " " + wordOps[op] + " " + inner(x[1])
	}
	return o
}

// Named declares a variable for an expression.
func (r *printer) Named(o operand) operand {
	if o.Op == ir.OpInvalid {
		return o
	}
	return r.let(o.Type, "%s", o.Name)
}

// Permute is one function.
func (r *printer) Permute(x, y operand, selector int) operand {
	return r.let(gpu.U32, "__byte_perm(%s, 0x%04x)", list(gpu.U32, x, y), selector)
}

// PermuteBy is one function.
func (r *printer) PermuteBy(x, y, selector operand) operand {
	return r.let(gpu.U32, "__byte_perm(%s)", list(gpu.U32, x, y, selector))
}

// narrowCasts sign-extend the low bits of an integer, by bytes.
var narrowCasts = map[int]string{1: "(signed char)", 2: "(short)"}

// Unpack shifts the element down and extends it.
func (r *printer) Unpack(w operand, d ir.DType, at int) operand {
	shifted := w.Name
	if at > 0 {
		shifted = fmt.Sprintf("(%s >> %d)", w.Name, at)
	}
	switch {
	case gpu.IsSignExtended(d):
		return r.let(gpu.I32, "%s%s", narrowCasts[d.Size()], shifted)
	case at+d.Bits() == 32:
		return r.let(gpu.U32, "%s >> %d", w.Name, at)
	}
	return r.let(gpu.U32, "%s & %su", shifted, hex(1<<d.Bits()-1))
}

// Extend is a cast or a mask.
func (r *printer) Extend(d ir.DType, o operand) operand {
	if gpu.IsSignExtended(d) {
		return r.let(gpu.I32, "%s%s", narrowCasts[d.Size()], o.Name)
	}
	return r.let(gpu.U32, "%s & %su", as(o, gpu.U32), hex(1<<d.Bits()-1))
}

// halfFunctions are of two f16 in a word.
var halfFunctions = map[ir.Op]string{
	ir.OpAdd: "half2_add", ir.OpSub: "half2_sub", ir.OpMul: "half2_mul", ir.OpFma: "half2_fma",
}

// Half is one helper.
func (r *printer) Half(op ir.Op, x []operand) operand {
	return r.let(gpu.U32, "%s(%s)", r.call(halfFunctions[op]), list(gpu.U32, x...))
}

// Dot4 is one helper; its name has the types of the bytes.
func (r *printer) Dot4(signed [2]bool, x, y, acc operand) operand {
	letters := map[bool]string{false: "u", true: "s"}
	name := r.call("dot4_" + letters[signed[0]] + letters[signed[1]])
	return r.let(gpu.I32, "%s(%s, %s)", name, list(gpu.U32, x, y), as(acc, gpu.I32))
}

// InsertBytes is a sum of shifted parts.
func (r *printer) InsertBytes(into, o operand, at, _ int) operand {
	if at == 0 {
		o.Op = ir.OpOr
		return o
	}
	return r.Word(ir.OpOr, into, r.Word(ir.OpShl, o, operand{Bits: uint64(8 * at), Type: gpu.I32}))
}
