package programtest

import (
	"encoding/binary"
	"fmt"
	"math"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// GroupProduct is a program of two warpgroups that multiply a matrix of GroupProductRows rows with one of Columns
// columns: a loop fills panels in shared memory, and each of its Steps is four products of GroupMma in a row.
type GroupProduct struct {
	Columns int
	Elem    ir.DType
	Steps   int64
	Sums    GroupSums
}

// GroupSums is how a loop keeps its sums.
type GroupSums int

// The ways: a carried vector, carried scalars, or a vector to which each step's product, of its own, is added.
const (
	CarriedVector GroupSums = iota
	CarriedScalars
	AddedVector
)

// Sizes of such a program.
const (
	GroupProductRows = 128
	groupThreads     = 256
	groupChunks      = program.GroupLine / program.GroupPiece // of a line, which is what a step multiplies
	groupPiece       = 8                                      // elements
)

// Name says which program it is.
func (g GroupProduct) Name() string {
	return fmt.Sprintf("product_%s_%d_%d", g.Elem, g.Columns, g.Sums)
}

// Program reads both matrices step by step, the lines of each one after the other, permutes their pieces, and stores the product row by row.
func (g GroupProduct) Program() *program.Program {
	b := program.NewBuilder(g.Name())
	n := int64(g.Columns)
	a := b.Buffer(0, g.Elem, "a", 16, g.Steps*groupChunks*GroupProductRows*program.GroupPiece)
	x := b.Buffer(1, g.Elem, "b", 16, g.Steps*groupChunks*n*program.GroupPiece)
	out := b.Buffer(2, ir.F32, "out", 16, GroupProductRows*n*4)
	b.Access(a, true, false)
	b.Access(x, true, false)
	b.Access(out, false, true)
	b.SetGrid(1)
	b.SetBlock(groupThreads)
	left := b.Alloca(g.Elem, program.SharedSpace, GroupProductRows*groupChunks*groupPiece, program.GroupAlign)
	right := b.Alloca(g.Elem, program.SharedSpace, n*groupChunks*groupPiece, program.GroupAlign)
	b.GridLoop(func(*program.Value) {
		thread := b.Cast(b.ThreadIndex(0), ir.I64)
		group := b.FloorDiv(thread, b.Index(program.GroupThreads))
		rows := b.PtrAdd(left, b.Mul(group, b.Index(program.GroupRows*groupChunks*groupPiece)))
		sums := b.For(b.Index(0), b.Index(g.Steps), b.Index(1), g.zeros(b), func(step *program.Value, carried []*program.Value) []*program.Value {
			b.Barrier()
			g.fill(b, a, left, step, thread, GroupProductRows)
			g.fill(b, x, right, step, thread, n)
			b.Barrier()
			return g.step(b, rows, right, carried)
		})
		g.store(b, out, thread, b.Concat(sums...))
	})
	return b.Finish()
}

func (g GroupProduct) lanes() int { return g.Columns / 2 }

func (g GroupProduct) zeros(b *program.Builder) []*program.Value {
	if g.Sums != CarriedScalars {
		return []*program.Value{b.Zero(program.Vector(ir.F32, g.lanes()))}
	}
	return lists.Make(g.lanes(), func(int) *program.Value { return b.Zero(program.Scalar(ir.F32)) })
}

// fill copies the pieces of a step.
func (g GroupProduct) fill(b *program.Builder, from, to, step, thread *program.Value, rows int64) {
	pieces := groupChunks * rows
	for first := int64(0); first < pieces; first += groupThreads {
		piece := b.Add(thread, b.Index(first))
		copyPiece := func() []*program.Value {
			source := b.Add(b.Mul(step, b.Index(pieces)), piece)
			row := b.FloorDiv(piece, b.Index(groupChunks))
			place := b.Alu(ir.OpXor, piece, b.FloorMod(row, b.Index(program.GroupAlign/program.GroupLine)))
			v := b.Load(b.PtrAdd(from, b.Mul(source, b.Index(groupPiece))), groupPiece, program.GroupPiece)
			b.Store(b.PtrAdd(to, b.Mul(place, b.Index(groupPiece))), v, program.GroupPiece)
			return nil
		}
		if first+groupThreads <= pieces {
			copyPiece()
		} else {
			b.If(b.Lt(piece, b.Index(pieces)), copyPiece, func() []*program.Value { return nil })
		}
	}
}

// step adds the products of a step to the sums.
func (g GroupProduct) step(b *program.Builder, left, right *program.Value, carried []*program.Value) []*program.Value {
	acc := b.Concat(carried...)
	if g.Sums == AddedVector {
		acc = b.Zero(acc.Type)
	}
	for chunk := int64(0); chunk < groupChunks; chunk += 2 {
		x := b.PtrAdd(left, b.Index(chunk*groupPiece))
		y := b.PtrAdd(right, b.Index(chunk*groupPiece))
		acc = b.GroupMma(acc, x, y)
	}
	switch g.Sums {
	case CarriedScalars:
		return lists.Make(g.lanes(), func(i int) *program.Value { return b.Extract(acc, i) })
	case AddedVector:
		acc = b.Add(carried[0], acc)
	}
	return []*program.Value{acc}
}

// store writes a thread's part of the product.
func (g GroupProduct) store(b *program.Builder, out, thread, sums *program.Value) {
	warp, lane := b.FloorDiv(thread, b.Index(32)), b.FloorMod(thread, b.Index(32))
	first := b.Add(b.Mul(warp, b.Index(16)), b.FloorDiv(lane, b.Index(4)))
	column := b.Mul(b.FloorMod(lane, b.Index(4)), b.Index(2))
	for i := 0; i < g.lanes(); i += 2 {
		row := b.Add(first, b.Index(int64(i/2%2*8)))
		at := b.Add(b.Mul(row, b.Index(int64(g.Columns))), b.Add(column, b.Index(int64(i/4*8))))
		b.Store(b.PtrAdd(out, at), b.Slice(sums, i, 2), 8)
	}
}

// element is a number of a matrix: small integers, so that every sum is exact.
func (g GroupProduct) element(matrix, k, row int) float64 {
	return float64((k*7+row*5+k*row+matrix)%9 - 4)
}

// Inputs are the buffers by slot.
func (g GroupProduct) Inputs() map[int][]byte {
	matrix := func(which, rows int) (out []byte) {
		for step := range int(g.Steps) {
			for row := range rows {
				for k := range groupChunks * groupPiece {
					bits := ir.FloatBits(g.Elem, g.element(which, step*groupChunks*groupPiece+k, row))
					out = binary.LittleEndian.AppendUint16(out, uint16(bits))
				}
			}
		}
		return out
	}
	return map[int][]byte{0: matrix(0, GroupProductRows), 1: matrix(1, g.Columns), 2: make([]byte, GroupProductRows*g.Columns*4)}
}

// Check compares what was stored with the product in float64.
func (g GroupProduct) Check(out []byte) error {
	for row := range GroupProductRows {
		for column := range g.Columns {
			want := 0.0
			for k := range int(g.Steps) * groupChunks * groupPiece {
				want += g.element(0, k, row) * g.element(1, k, column)
			}
			got := math.Float32frombits(binary.LittleEndian.Uint32(out[4*(row*g.Columns+column):]))
			if float64(got) != want {
				return fmt.Errorf("row %d, column %d: %g, want %g", row, column, got, want)
			}
		}
	}
	return nil
}

// GroupProducts are programs of all widths, types and ways to keep sums that tests look at.
func GroupProducts() (list []GroupProduct) {
	for i, columns := range []int{8, 24, 128, 256} {
		for k, elem := range []ir.DType{ir.F16, ir.BF16} {
			list = append(list, GroupProduct{columns, elem, 3, GroupSums((i + k) % 3)})
		}
	}
	return append(list, GroupProduct{16, ir.F16, 3, CarriedVector}, GroupProduct{16, ir.F16, 3, CarriedScalars}, GroupProduct{16, ir.BF16, 3, AddedVector})
}
