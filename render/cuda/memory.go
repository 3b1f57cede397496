package cuda

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/render/gpu"
)

// Addresses and accesses. The base of an address is a parameter, a table, the
// block's or thread's own memory, or a variable: a pointer to bytes.

// at prints an address.
func at(a *gpu.Address) string {
	switch {
	case a.Off == 0:
		return a.Base
	case a.Off < 0:
		return fmt.Sprintf("%s - %d", a.Base, -a.Off)
	}
	return fmt.Sprintf("%s + %d", a.Base, a.Off)
}

// pointer is an address as a pointer to a type.
func pointer(name string, a *gpu.Address) string {
	if a.Off == 0 {
		return fmt.Sprintf("(%s*)%s", name, a.Base)
	}
	return fmt.Sprintf("(%s*)(%s)", name, at(a))
}

// Scaled declares a pointer. Products are 64 bits in memory that may be large.
func (r *printer) Scaled(a *gpu.Address, space program.Space, index operand, size int64) operand {
	t, kind := gpu.I64, "char*"
	if gpu.Is32(space) {
		t = gpu.I32
	}
	if a.Fixed {
		kind = "const char*"
	}
	offset := as(index, t)
	if size > 1 {
		offset += fmt.Sprintf(" * %d", size)
	}
	o := operand{Name: r.name("a")}
	r.line("%s %s = %s + %s;", kind, o.Name, a.Base, offset)
	return o
}

// Reachable: offsets have any size.
func (r *printer) Reachable(a *gpu.Address, _ program.Space) *gpu.Address { return a }

// loadFunctions load through a pointer, loadHelpers n bytes as words.
var (
	loadFunctions  = map[gpu.Policy]string{gpu.Constant: "__ldg", gpu.Shared: "__ldcg"}
	loadHelpers    = map[gpu.Policy]string{gpu.Once: "load_last", gpu.OnceConstant: "load_once", gpu.WideConstant: "load_wide"}
	storeFunctions = map[gpu.Policy]string{gpu.Once: "__stcs", gpu.Shared: "__stcg"}
)

// Typed: helpers load words.
func (r *printer) Typed(access gpu.Access) bool { return loadHelpers[access.Policy] == "" }

// read is the expression of a load of one C type of some bytes.
func (r *printer) read(access gpu.Access, a *gpu.Address, name string, bytes int) string {
	if helper := loadHelpers[access.Policy]; helper != "" {
		return fmt.Sprintf("%s(%s)", r.call(fmt.Sprintf("%s%d", helper, bytes)), at(a))
	}
	source := pointer("const "+name, a)
	if function := loadFunctions[access.Policy]; function != "" {
		return fmt.Sprintf("%s(%s)", function, source)
	}
	return "*" + source
}

// Load loads 4 to 16 bytes.
func (r *printer) Load(access gpu.Access, t gpu.Type, n int, a *gpu.Address) []operand {
	bytes := n * t.Bits() / 8
	if n == 1 {
		return []operand{r.let(t, "%s", r.read(access, a, typeName(t), bytes))}
	}
	return r.vector(t, n, r.read(access, a, vectorName(t, n), bytes))
}

// narrowName is the type of accesses of one or two bytes.
func narrowName(d ir.DType) string {
	switch {
	case d.Size() == 1 && gpu.IsSignExtended(d):
		return "signed char"
	case d.Size() == 1:
		return "unsigned char"
	case gpu.IsSignExtended(d):
		return "short"
	}
	return "unsigned short"
}

// LoadNarrow loads one element of 1 or 2 bytes; helpers give its bits.
func (r *printer) LoadNarrow(access gpu.Access, d ir.DType, a *gpu.Address) operand {
	x := r.read(access, a, narrowName(d), d.Size())
	switch {
	case d == ir.Bool:
		return r.let(gpu.Bool, "%s != 0", x)
	case !r.Typed(access):
		return r.Extend(d, r.let(gpu.U32, "%s", x))
	}
	return r.let(gpu.TypeOf(d), "%s", x)
}

var bytesNames = map[int]string{1: "unsigned char", 2: "unsigned short"}

// LoadBytes loads 1 or 2 bytes.
func (r *printer) LoadBytes(access gpu.Access, width int, a *gpu.Address) operand {
	return r.let(gpu.U32, "%s", r.read(access, a, bytesNames[width], width))
}

// fresh gives v variables of its own that start as `from` does.
func (r *printer) fresh(v, from *program.Value) []operand {
	out := append([]operand(nil), r.Storage(from)...)
	t := r.StorageType(v)
	for i := range out {
		out[i] = r.let(t, "%s", as(out[i], t))
	}
	r.Set(v, out)
	return out
}

// Guarded loads inside of an if, over the other value.
func (r *printer) Guarded(in *program.Instr, access gpu.Access) {
	to := r.fresh(in.Result, in.Args[2])
	r.begin("if (%s)", text(r.Lane(in.Args[0], 0)))
	for i, o := range r.Loaded(in.Result.Type, access, r.Address(in.Args[1]), in.Align) {
		r.Move(to[i], o)
	}
	r.end("}")
}

// write prints a store of one C type.
func (r *printer) write(access gpu.Access, a *gpu.Address, name, value string) {
	if function := storeFunctions[access.Policy]; function != "" {
		r.line("%s(%s, %s);", function, pointer(name, a), value)
		return
	}
	r.line("*%s = %s;", pointer(name, a), value)
}

// Store stores 4 to 16 bytes.
func (r *printer) Store(access gpu.Access, t gpu.Type, a *gpu.Address, x []operand) {
	if len(x) == 1 {
		r.write(access, a, typeName(t), as(x[0], t))
		return
	}
	name := vectorName(t, len(x))
	r.write(access, a, name, fmt.Sprintf("make_%s(%s)", name, list(t, x...)))
}

// StoreNarrow stores one element of 1 or 2 bytes.
func (r *printer) StoreNarrow(access gpu.Access, d ir.DType, a *gpu.Address, o operand) {
	name := narrowName(d)
	r.write(access, a, name, fmt.Sprintf("(%s)%s", name, text(o)))
}

// StoreBytes stores 1 or 2 bytes.
func (r *printer) StoreBytes(access gpu.Access, width int, a *gpu.Address, w operand, from int) {
	value := text(w)
	if from != 0 {
		value = fmt.Sprintf("(%s >> %d)", value, 8*from)
	}
	name := bytesNames[width]
	r.write(access, a, name, fmt.Sprintf("(%s)%s", name, value))
}

// Prefetch fetches into the second cache.
func (r *printer) Prefetch(a *gpu.Address) { r.line("%s(%s);", r.call("prefetch_l2"), at(a)) }

// atomicNames are CUDA's functions, relaxed.
var atomicNames = map[ir.Op]string{
	ir.OpAdd: "atomicAdd", ir.OpMin: "atomicMin", ir.OpMax: "atomicMax",
	ir.OpAnd: "atomicAnd", ir.OpOr: "atomicOr", ir.OpXor: "atomicXor",
}

// Atomic is one function.
func (r *printer) Atomic(in *program.Instr, a *gpu.Address, t gpu.Type, value operand) operand {
	machine := t
	if t == gpu.I64 && in.Ir != ir.OpMin && in.Ir != ir.OpMax {
		machine = gpu.U64 // the same bits; functions exist unsigned only
	}
	call := fmt.Sprintf("%s(%s, %s)", atomicNames[in.Ir], pointer(typeName(machine), a), as(value, machine))
	if machine != t {
		call = fmt.Sprintf("(%s)%s", typeName(t), call)
	}
	return r.let(t, "%s", call)
}

// CopyAsync is a helper.
func (r *printer) CopyAsync(to, from *gpu.Address, bytes int64) {
	r.line("%s(%s, %s);", r.call(fmt.Sprintf("copy_async%d", bytes)), at(to), at(from))
}
