package interp

import (
	"fmt"

	"tgc/ir/program"
)

// Sizes of the part of a warpgroup's product that a warp computes.
const (
	groupWarps  = program.GroupThreads / warpThreads
	groupRows   = program.GroupRows / groupWarps
	groupPoints = program.GroupPoints
)

// groupProduct is a product of warpgroups as a machine runs it, warp by warp.
type groupProduct struct {
	machine *machine
	in      *program.Instr // aligned as its pieces are: for the checks of accesses
	columns int
	lanes   int // of a thread
	read    func(b []byte) float64
	a, b    []float64 // rows of A and columns of B of the warp at hand
	acc     []float32
	out     []float32
}

// groupMma computes in float64, rounded once, as mma does.
func (m *machine) groupMma(in *program.Instr) (func(), error) {
	acc := in.Args[0].Type
	columns, ok := program.GroupColumns(acc)
	if !ok || m.block.threads%program.GroupThreads != 0 {
		return nil, fmt.Errorf("no product of a warpgroup to %s by %d threads", acc, m.block.threads)
	}
	aligned := *in
	aligned.Align = program.GroupPiece
	p := &groupProduct{machine: m, in: &aligned, columns: columns, lanes: acc.Lanes, read: readerOf(in.Args[1].Type.Elem),
		a: make([]float64, groupRows*groupPoints), b: make([]float64, columns*groupPoints),
		acc: lanes[float32](m.reg(in.Args[0])), out: lanes[float32](m.define(in.Result))}
	return func() {
		for w := 0; w < m.threads; w += warpThreads {
			if m.block.active[w] && !p.run(w) {
				return
			}
		}
	}, nil
}

// run computes the rows of the warp that begins with a thread; false after a fault.
func (p *groupProduct) run(w int) bool {
	first := w / warpThreads % groupWarps * groupRows
	if !p.load(p.a, 1, w, first, groupRows) || !p.load(p.b, 2, w, 0, p.columns) {
		return false
	}
	for t := range warpThreads {
		for i := 0; i < p.lanes; i += 2 { // two columns at once: the sums do not wait for each other
			row, column := t/4+i/2%2*8, i/4*8+t%4*2
			at := (w+t)*p.lanes + i
			sum0, sum1 := float64(p.acc[at]), float64(p.acc[at+1])
			left, right := p.b[column*groupPoints:][:groupPoints], p.b[(column+1)*groupPoints:][:groupPoints]
			for k, v := range p.a[row*groupPoints:][:groupPoints] {
				sum0 += v * left[k]
				sum1 += v * right[k]
			}
			p.out[at], p.out[at+1] = float32(sum0), float32(sum1)
		}
	}
	return true
}

// load reads rows of a matrix from where an argument points. The threads of the warp count as its readers in turn,
// so that a write by any one of them without a barrier in between is a race.
func (p *groupProduct) load(to []float64, arg, w, first, rows int) bool {
	const bytes, elements = program.GroupPiece, program.GroupPiece / 2
	m := p.machine
	ptrs := m.reg(p.in.Args[arg]).ptrs
	group := w / program.GroupThreads * program.GroupThreads
	for t := w; t < w+warpThreads; t++ {
		if ptrs[t] != ptrs[group] {
			m.fail(p.in, fmt.Errorf("threads %d and %d of a warpgroup have different pointers %s", group, t, p.in.Args[arg]))
			return false
		}
	}
	start := ptrs[w]
	if start.region != nil && start.region.align < program.GroupAlign {
		m.fail(p.in, fmt.Errorf("%s: aligned to %d, want %d", start.region.name, start.region.align, program.GroupAlign))
		return false
	}
	if !program.InGroupArray(start.off) {
		m.fail(p.in, fmt.Errorf("a matrix at offset %d: not at the start of eight rows, and of %d points of the sum", start.off, groupPoints))
		return false
	}
	for k := 0; k < groupPoints; k += elements {
		for r := range rows {
			at := start
			at.off = program.GroupOffset(start.off + int64(first+r)*program.GroupLine + int64(k/elements)*bytes)
			mem := m.span(p.in, at, bytes, w+r%warpThreads, false)
			if mem == nil {
				return false
			}
			for e := range elements {
				to[r*groupPoints+k+e] = p.read(mem[2*e:])
			}
		}
	}
	return true
}
