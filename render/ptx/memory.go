package ptx

import (
	"fmt"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/render/gpu"
)

// Addresses and accesses. The base of global memory is a 64-bit register; that of
// shared and local memory a 32-bit one, or the symbol of all such memory.

// at prints an address. The grammar has a sum and no difference: a negative offset
// stands behind its + (PTX ISA, "Addresses as operands": reg+immOff).
func at(a *gpu.Address) string {
	if a.Off == 0 {
		return "[" + a.Base + "]"
	}
	return fmt.Sprintf("[%s+%d]", a.Base, a.Off)
}

// Scaled is one mad; products are 64 bits in memory that may be large.
func (r *printer) Scaled(a *gpu.Address, space program.Space, index operand, size int64) operand {
	name, t, base := "mad.wide.s32", gpu.U64, a.Base
	switch {
	case gpu.Is32(space):
		index, name, t = r.Hold(index, gpu.I32), "mad.lo.s32", gpu.U32
	case classOf(index.Type) == wide:
		name = "mad.lo.s64"
	}
	d := r.reg(t)
	if gpu.Is32(space) {
		base = r.symbol(base)
	}
	r.ins("%s %s, %s, %d, %s", name, d.Name, index.Name, size, base)
	return d
}

// maxOffset is what stays in an instruction; larger offsets are added.
const maxOffset = 1 << 22

// Reachable adds a large offset to the base.
func (r *printer) Reachable(a *gpu.Address, space program.Space) *gpu.Address {
	if a.Off <= maxOffset && a.Off >= -maxOffset {
		return a
	}
	out := *a
	out.Off = 0
	out.Base = r.Once(fmt.Sprintf("displaced %s %d", a.Base, a.Off), func() operand {
		if gpu.Is32(space) {
			d := r.reg(gpu.U32)
			r.ins("add.s32 %s, %s, %d", d.Name, r.symbol(a.Base), a.Off)
			return d
		}
		return r.convert("add.s64", gpu.U64, fmt.Sprintf("%s, %d", a.Base, a.Off))
	}).Name
	return &out
}

// symbol is the address of shared or local memory in a register.
func (r *printer) symbol(base string) string {
	if base != gpu.SharedMemory && base != gpu.LocalMemory {
		return base
	}
	return r.Once("symbol "+base, func() operand { return r.convert("mov.u32", gpu.U32, base) }).Name
}

var spaceNames = map[program.Space]string{
	program.GlobalSpace: "global", program.LocalSpace: "local",
	program.SharedSpace: "shared", program.ConstSpace: "global",
	program.PeerSpace: "shared::cluster",
}

var loadNames = map[gpu.Policy]string{
	gpu.Constant: ".nc", gpu.Once: ".L1::no_allocate", gpu.OnceConstant: ".nc.L1::no_allocate", gpu.Shared: ".cg",
	gpu.WideConstant: ".nc.L1::no_allocate.L2::256B",
}

func loadName(access gpu.Access) string {
	return "ld." + spaceNames[access.Space] + loadNames[access.Policy]
}

var storeNames = map[gpu.Policy]string{gpu.Once: ".cs", gpu.Shared: ".cg"}

func storeName(access gpu.Access) string {
	return "st." + spaceNames[access.Space] + storeNames[access.Policy]
}

// vectorName is the type of an access of n elements.
func vectorName(t gpu.Type, n int) string {
	if n == 1 {
		return fmt.Sprintf("b%d", t.Bits())
	}
	return fmt.Sprintf("v%d.b%d", n, t.Bits())
}

func list(regs []operand) string {
	if len(regs) == 1 {
		return regs[0].Name
	}
	return fragment(regs)
}

// fragment prints registers between braces.
func fragment(regs []operand) string {
	names := lists.Map(regs, func(o operand) string { return o.Name })
	return "{" + strings.Join(names, ", ") + "}"
}

// Typed: every load can have any type.
func (r *printer) Typed(gpu.Access) bool { return true }

// Load loads 4 to 16 bytes.
func (r *printer) Load(access gpu.Access, t gpu.Type, n int, a *gpu.Address) []operand {
	regs := r.Array(t, int64(n))
	r.load(loadName(access), t, regs, a)
	return regs
}

func (r *printer) load(name string, t gpu.Type, regs []operand, a *gpu.Address) {
	r.ins("%s.%s %s, %s", name, vectorName(t, len(regs)), list(regs), at(a))
}

// LoadNarrow loads one element of 1 or 2 bytes.
func (r *printer) LoadNarrow(access gpu.Access, d ir.DType, a *gpu.Address) operand {
	o := r.reg(gpu.U32)
	r.loadNarrow(loadName(access), d, o, a)
	if d == ir.Bool {
		return r.NotZero(gpu.Word, o)
	}
	return o
}

func (r *printer) loadNarrow(name string, d ir.DType, o operand, a *gpu.Address) {
	kind := "u"
	if gpu.IsSignExtended(d) {
		kind = "s"
	}
	r.ins("%s.%s%d %s, %s", name, kind, 8*d.Size(), o.Name, at(a))
}

// LoadBytes loads 1 or 2 bytes.
func (r *printer) LoadBytes(access gpu.Access, width int, a *gpu.Address) operand {
	return r.convert(fmt.Sprintf("%s.u%d", loadName(access), 8*width), gpu.U32, at(a))
}

// Guarded loads under a predicate, into registers that hold the other value
// already; pieces that must be put together, under a branch.
func (r *printer) Guarded(in *program.Instr, access gpu.Access) {
	cond, a, to := r.Lane(in.Args[0], 0), r.Address(in.Args[1]), in.Result
	if cond.Literal() {
		if cond.Bits&1 != 0 {
			r.Set(to, r.Loaded(to.Type, access, a, in.Align))
		} else {
			r.Set(to, r.StorageAs(in.Args[2], to))
		}
		return
	}
	other := r.StorageAs(in.Args[2], to)
	regs := r.Variables(to)
	for i := range regs {
		r.Move(regs[i], other[i])
	}
	if whole(to.Type, in.Align) {
		r.loadGuarded("@"+cond.Name+" "+loadName(access), to.Type, regs, a, in.Align)
		return
	}
	skip := r.label()
	r.ins("@!%s bra %s", cond.Name, skip)
	r.Open()
	for i, o := range r.Loaded(to.Type, access, a, in.Align) {
		r.Move(regs[i], o)
	}
	r.Close()
	r.place(skip)
}

// whole reports an access whose pieces are whole registers.
func whole(t program.Type, align int) bool {
	size := t.Elem.Size()
	switch {
	case t.Elem == ir.Bool:
		return false
	case t.Lanes == 1 && size <= 2, size == 8:
		return align >= size
	}
	return align >= 4 && size*t.Lanes%4 == 0
}

func (r *printer) loadGuarded(name string, t program.Type, to []operand, a *gpu.Address, align int) {
	size := t.Elem.Size()
	if t.Lanes == 1 && size <= 2 {
		r.loadNarrow(name, t.Elem, to[0], a)
		return
	}
	register := to[0].Type
	for _, c := range gpu.Pieces(size*t.Lanes, align) {
		each := register.Bits() / 8
		r.load(name, register, to[c.Off/each:][:c.Width/each], a.Plus(int64(c.Off)))
	}
}

// Store stores 4 to 16 bytes.
func (r *printer) Store(access gpu.Access, t gpu.Type, a *gpu.Address, x []operand) {
	r.ins("%s.%s %s, %s", storeName(access), vectorName(t, len(x)), at(a), list(x))
}

// StoreNarrow stores one element of 1 or 2 bytes.
func (r *printer) StoreNarrow(access gpu.Access, d ir.DType, a *gpu.Address, o operand) {
	r.storeBytes(access, d.Size(), a, r.WordOf(o))
}

// StoreBytes stores 1 or 2 bytes, moved down first.
func (r *printer) StoreBytes(access gpu.Access, width int, a *gpu.Address, w operand, from int) {
	if from != 0 {
		w = r.convert("shr.u32", gpu.U32, fmt.Sprintf("%s, %d", w.Name, 8*from))
	}
	r.storeBytes(access, width, a, w)
}

func (r *printer) storeBytes(access gpu.Access, width int, a *gpu.Address, w operand) {
	r.ins("%s.u%d %s, %s", storeName(access), 8*width, at(a), w.Name)
}

// Prefetch fetches into the second cache.
func (r *printer) Prefetch(a *gpu.Address) { r.ins("prefetch.global.L2 %s", at(a)) }

// CopyAsync leaves the first cache alone where it can: only copies of 16 bytes have the choice.
func (r *printer) CopyAsync(to, from *gpu.Address, bytes int64) {
	cache := "ca"
	if bytes == 16 {
		cache = "cg"
	}
	r.ins("cp.async.%s.shared.global %s, %s, %d", cache, at(to), at(from), bytes)
}

// Atomic is relaxed.
func (r *printer) Atomic(in *program.Instr, a *gpu.Address, t gpu.Type, value operand) operand {
	d := in.Result.Type.Elem
	scope := "relaxed.gpu.global"
	if in.Args[0].Type.Space == program.SharedSpace {
		scope = "relaxed.cta.shared"
	}
	kind := suffix(gpu.Number{DType: d, Type: t})
	switch {
	case in.Ir == ir.OpAnd || in.Ir == ir.OpOr || in.Ir == ir.OpXor:
		kind = fmt.Sprintf("b%d", d.Bits())
	case in.Ir == ir.OpAdd && !d.IsFloat():
		kind = fmt.Sprintf("u%d", d.Bits()) // wraps the same; 64 bits exist unsigned only
	}
	o := r.reg(t)
	value = r.Variable(value, t)
	r.ins("atom.%s.%s.%s %s, %s, %s", scope, strings.ToLower(in.Ir.String()), kind, o.Name, at(a), value.Name)
	return o
}
