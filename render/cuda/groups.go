package cuda

import (
	"fmt"
	"strings"

	"tgc/internal/lists"
	"tgc/ir/program"
)

// Products of warpgroups are inline assembly: CUDA C has no functions for them. See render/ptx.

// GroupFence is one helper, behind assembly that gives the values, so that the compiler makes them before.
func (r *printer) GroupFence(values []operand) {
	r.changes(values)
	r.line("%s();", r.call("group_fence"))
}

// changes makes variables results of assembly that does nothing.
func (r *printer) changes(values []operand) {
	if len(values) > 0 {
		r.line(`asm volatile("" : %s : : "memory");`, operands("+f", values))
	}
}

// GroupMma changes its accumulators; what it does not add to, it only writes.
func (r *printer) GroupMma(in *program.Instr, accumulators []operand, adds bool) {
	columns, _ := program.GroupColumns(in.Args[0].Type)
	elem := in.Args[1].Type.Elem
	constraint, predicate := "=f", 0
	if adds {
		constraint, predicate = "+f", 1
	}
	n := len(accumulators)
	r.line(`asm volatile("{ .reg .pred p; mov.pred p, %d; "`, predicate)
	r.line(`	"wgmma.mma_async.sync.aligned.m%dn%dk%d.f32.%s.%s {%s}, %%%d, %%%d, p, 1, 1, 0, 0; }"`, program.GroupRows, columns, program.GroupPoints,
		elem, elem, numbered(0, n), n, n+1)
	r.line("	: %s", operands(constraint, accumulators))
	r.line("	: \"l\"(%s), \"l\"(%s) : \"memory\");", r.matrix(in.Args[1]), r.matrix(in.Args[2]))
}

// matrix is a descriptor.
func (r *printer) matrix(pointer *program.Value) string {
	return fmt.Sprintf("%s(%s)", r.call("group_matrix"), at(r.Address(pointer)))
}

// GroupWait also makes each accumulator one that assembly after the wait gives: the compiler must not read it before.
func (r *printer) GroupWait(accumulators [][]operand) {
	r.line("%s();", r.call("group_wait"))
	for _, of := range accumulators {
		r.changes(of)
	}
}

// operands are those of inline assembly.
func operands(constraint string, of []operand) string {
	return strings.Join(lists.Map(of, func(o operand) string { return fmt.Sprintf("%q(%s)", constraint, o.Name) }), ", ")
}

// showStores lets products of warpgroups see what ordinary stores have written, once the threads have met.
func (r *printer) showStores() {
	if r.HasGroups() {
		r.line("%s();", r.call("group_show_stores"))
	}
}
