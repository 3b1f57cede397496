package opt

import (
	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// A lane has several results of a matrix instruction of integers, each of which belongs to a sum of its own. Written one sum after the other, as
// the results of a tile are, the first sum needs the instructions of all copies, and what these have for the other sums waits in registers: of
// 16 copies of four tiles of 16 rows, 512 of them. An assembler takes the order of a text of thousands of instructions as it is, by and large.

// orderProducts lets arithmetic follow the matrix instruction, or the weights, that it waits for, where fewer registers are in use then.
func orderProducts(p *program.Program) { weightsOf(p).orderProducts(p.Body) }

func (w *weights) orderProducts(b *program.Block) {
	for i := 0; i < len(b.Instrs); i++ {
		for inner := range b.Instrs[i].Blocks() {
			w.orderProducts(inner)
		}
		end := i
		for end < len(b.Instrs) && dep.Free(&b.Instrs[end]) {
			end++
		}
		if !w.order(b, i, end, isProduct) && several(b.Instrs[i:end], w.isStreamed) && 2*dep.Pressure(b, w.isArithmetic) > 3*w.registers() {
			w.order(b, i, end, w.isStreamed)
		}
		i = max(i, end-1)
	}
}

// several reports more than one of some instructions.
func several(instrs []program.Instr, is func(in *program.Instr) bool) bool {
	count := 0
	for i := range instrs {
		if is(&instrs[i]) {
			count++
		}
	}
	return count > 1
}

// order orders some instructions of a block by what they wait for, if that takes fewer registers.
func (w *weights) order(b *program.Block, begin, end int, awaited func(in *program.Instr) bool) bool {
	if !several(b.Instrs[begin:end], awaited) {
		return false
	}
	count := 0
	next := func(in *program.Instr) int {
		if !awaited(in) {
			return 0
		}
		count++
		return count
	}
	trial := *b
	trial.Instrs = inPlaces(b.Instrs, begin, end, end-begin, next, nothing)
	fewer := registersIn(&trial) < registersIn(b)
	if fewer {
		b.Instrs = trial.Instrs
	}
	return fewer
}

// nothing reports no instruction.
func nothing(*program.Instr) bool { return false }

// isProduct reports a matrix instruction of integers, whose results are scaled lane by lane. Those of floats add to the next one's.
func isProduct(in *program.Instr) bool {
	return in.Op == program.Mma && !in.Result.Type.Elem.IsFloat()
}

// registersIn is the most registers that hold values of a block.
func registersIn(b *program.Block) int {
	return dep.Pressure(b, func(*program.Instr) bool { return true })
}
