package ptx

import (
	"fmt"

	"tgc/ir/program"
	"tgc/render/gpu"
)

// Products of warpgroups. Their operands are descriptors: 64 bits that say where in shared memory a matrix lies, in
// units of 16 bytes. Bits 0 to 13 are the address, 16 to 29 the distance of pieces along the sum, which lines of 128 bytes
// give no meaning, 32 to 45 that of eight rows; bit 62 says how the pieces of such a line are permuted.
const (
	descriptorUnit = program.GroupPiece
	addressBits    = 14
	addressMask    = 1<<addressBits - 1
	lowLayout      = 1 << 16
	highLayout     = program.GroupAlign/descriptorUnit | 1<<30
)

// GroupFence is one instruction.
func (r *printer) GroupFence([]operand) { r.ins("wgmma.fence.sync.aligned") }

// GroupWait ends the group of what was started and waits for all groups.
func (r *printer) GroupWait([][]operand) {
	r.ins("wgmma.commit_group.sync.aligned")
	r.ins("wgmma.wait_group.sync.aligned 0")
}

// GroupMma is one instruction; its predicate says whether it adds, the numbers behind that neither factor is negated
// or transposed.
func (r *printer) GroupMma(in *program.Instr, accumulators []operand, adds bool) {
	columns, _ := program.GroupColumns(in.Args[0].Type)
	a, b := r.descriptor(in.Args[1]), r.descriptor(in.Args[2])
	p := r.Once(fmt.Sprintf("group adds %t", adds), func() operand {
		value := literal(0)
		if adds {
			value = literal(1)
		}
		return r.Variable(value, gpu.Bool)
	})
	elem := in.Args[1].Type.Elem
	r.ins("wgmma.mma_async.sync.aligned.m%dn%dk%d.f32.%s.%s %s, %s, %s, %s, 1, 1, 0, 0", program.GroupRows, columns, program.GroupPoints,
		elem, elem, fragment(accumulators), a.Name, b.Name, p.Name)
}

// descriptor is a matrix in shared memory. Those around one address share what is computed of it.
func (r *printer) descriptor(pointer *program.Value) operand {
	a := *r.Address(pointer)
	inside := a.Off
	if inside%descriptorUnit != 0 { // the address is a multiple, its parts are not
		inside = 0
	}
	a.Off -= inside
	first := r.Once(fmt.Sprintf("matrix at %s %d", a.Base, a.Off), func() operand { return r.matrix(&a) })
	low := first
	if inside != 0 {
		low = r.Once(fmt.Sprintf("matrix %s %d", first.Name, inside), func() operand { return r.matrixBehind(&a, first, inside) })
	}
	return r.Once("descriptor "+low.Name, func() operand {
		high := r.Once("descriptor of rows", func() operand { return r.Variable(literal(highLayout), gpu.U32) })
		return r.convert("mov.b64", gpu.U64, fmt.Sprintf("{%s, %s}", low.Name, high.Name))
	})
}

// matrix is the low word of a descriptor.
func (r *printer) matrix(a *gpu.Address) operand {
	at := r.symbol(a.Base)
	if a.Off != 0 {
		at = r.convert("add.u32", gpu.U32, fmt.Sprintf("%s, %d", at, a.Off)).Name
	}
	place := r.convert("bfe.u32", gpu.U32, fmt.Sprintf("%s, 4, %d", at, addressBits))
	return r.convert("or.b32", gpu.U32, fmt.Sprintf("%s, %d", place.Name, lowLayout))
}

// matrixBehind is the low word of a descriptor some bytes further on. A base in a register need not be an address
// in shared memory by itself, so that the sum may leave its field.
func (r *printer) matrixBehind(a *gpu.Address, first operand, bytes int64) operand {
	low := r.convert("add.u32", gpu.U32, fmt.Sprintf("%s, %d", first.Name, bytes/descriptorUnit&addressMask))
	if a.Base == gpu.SharedMemory {
		return low
	}
	return r.convert("and.b32", gpu.U32, fmt.Sprintf("%s, 0x%x", low.Name, lowLayout|addressMask))
}

// showStores lets products of warpgroups see what ordinary stores have written, once the threads have met.
func (r *printer) showStores() {
	if r.HasGroups() {
		r.ins("fence.proxy.async.shared::cta")
	}
}
