package opt

import (
	"slices"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/dep"
	"tgc/target"
)

// Copies to tiles. Where a thread stores in a tile what it has loaded, as it is, an asynchronous copy needs no
// registers, and the thread waits for nothing until the next iteration, which uses the tile.

// hasCopies reports a GPU with asynchronous copies.
func hasCopies(desc *target.Desc) bool { return desc.Kind == target.GPU && desc.SM >= program.CopySM }

// tileCopies are the stores of a loop's filling phase that become copies.
type tileCopies struct {
	rewriter
	isTile  func(pointer *program.Value) bool
	address map[*program.Value]*program.Instr // what makes a pointer into a shared array; gets those of copies
	readers map[*program.Value]int
	loads   map[*program.Value]*program.Instr // of the filling phase
	copied  map[*program.Value]bool           // what is loaded for such a store, and for nothing else
}

// filling is what fills, with copies where there can be some. What it is given stays as it is.
func (c *tileCopies) filling(instrs []program.Instr) []program.Instr {
	c.readers, c.loads, c.copied = c.program.Readers(), make(map[*program.Value]*program.Instr), make(map[*program.Value]bool)
	b := &program.Block{Instrs: instrs}
	b.Each(c.find)
	return c.block(b).Instrs
}

// find notes loads, and stores that become copies.
func (c *tileCopies) find(in *program.Instr) {
	switch in.Op {
	case program.Load:
		c.loads[in.Result] = in
	case program.Store:
		v := in.Args[1]
		load := c.loads[v]
		if load != nil && c.readers[v] == 1 && c.isTile(in.Args[0]) && load.Args[0].Type.Space == program.GlobalSpace &&
			c.memory.ReadOnly(load.Args[0]) && v.Type.Elem != ir.Bool && copyPieces(load, in) != nil {
			c.copied[v] = true
		}
	}
}

// copyPieces are the bytes of the copies that do what a load and a store do, nil if they need smaller ones than
// there are.
func copyPieces(load, store *program.Instr) (pieces []int64) {
	align := int64(min(load.Align, store.Align))
	for left := int64(load.Result.Type.Bytes()); left > 0; {
		i := slices.IndexFunc(program.CopySizes[:], func(n int64) bool { return n <= align && n <= left })
		if i < 0 {
			return nil
		}
		pieces = append(pieces, program.CopySizes[i])
		left -= program.CopySizes[i]
	}
	return pieces
}

// block is a block with the copies in it.
func (c *tileCopies) block(b *program.Block) *program.Block {
	if b == nil {
		return nil
	}
	out := &program.Block{Args: b.Args}
	for _, in := range b.Instrs {
		switch {
		case in.Op == program.Load && c.copied[in.Result]:
		case in.Op == program.Store && c.copied[in.Args[1]]:
			out.Instrs = append(out.Instrs, c.copies(&in)...)
		default:
			in.Body, in.Else = c.block(in.Body), c.block(in.Else)
			out.Instrs = append(out.Instrs, in)
		}
	}
	return out
}

// copies are those that take the place of a store.
func (c *tileCopies) copies(store *program.Instr) (out []program.Instr) {
	load := c.loads[store.Args[1]]
	offset, size := int64(0), int64(load.Result.Type.Elem.Size())
	for _, bytes := range copyPieces(load, store) {
		to, from := store.Args[0], load.Args[0]
		if offset > 0 {
			by := c.value(program.Scalar(ir.I64))
			out = append(out, program.Instr{Op: program.Const, Int: offset / size, Result: by})
			for _, p := range []**program.Value{&to, &from} {
				made := &program.Instr{Op: program.PtrAdd, Args: []*program.Value{*p, by}, Result: c.derived(*p)}
				if c.address[*p] != nil {
					c.address[made.Result] = made
				}
				*p, out = made.Result, append(out, *made)
			}
		}
		out = append(out, program.Instr{Op: program.CopyAsync, Args: []*program.Value{to, from}, Int: bytes})
		offset += bytes
	}
	return out
}

// onlyCopies reports an instruction that starts copies and does nothing else: it keeps no thread from going on.
func onlyCopies(in *program.Instr) bool {
	copies, others := false, false
	(&program.Block{Instrs: []program.Instr{*in}}).Each(func(in *program.Instr) {
		if in.Op == program.CopyAsync {
			copies = true
		} else if dep.Of(in)&^(dep.Reads|dep.Controls) != 0 {
			others = true
		}
	})
	return copies && !others
}

// startsCopies reports a block with copies.
func startsCopies(b *program.Block) (any bool) {
	b.Each(func(in *program.Instr) { any = any || in.Op == program.CopyAsync })
	return any
}
