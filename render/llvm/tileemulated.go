package llvm

import (
	"fmt"

	llir "github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/ir"
	"tgc/ir/program"
)

// Tile instructions of a target that emulates them: functions of the module do what Intel's
// manual says of TDPBSSD and its like, and of TDPBF16PS, to the bit. The order of the sums of
// BF16 is program.TileShape's; numbers below the least normal one are zero.

// emulatedTileDot calls the functions.
func (r *renderer) emulatedTileDot(in *program.Instr) error {
	row := types.NewVector(program.TileColumns, types.I32)
	sums := r.bitcast(r.value(in.Args[0]), types.NewPointer(row))
	for i := range in.Tile.Rows {
		store := r.at.NewStore(intOf(row, 0), r.pointerAdd(r.at, row, sums, intOf(types.I64, int64(i))))
		store.Align = 1
	}
	for i := 1; i < len(in.Args); i += 2 {
		x, y := in.Args[i], in.Args[i+1]
		c := r.desc.TileDot(x.Type.Elem.String(), y.Type.Elem.String())
		if c == nil {
			return fmt.Errorf("the target has no product of tiles of %s and %s", x.Type.Elem, y.Type.Elem)
		}
		s := &in.Tile
		args := []value.Value{r.bitcast(sums, types.I8Ptr), r.bitcast(r.value(x), types.I8Ptr), r.bitcast(r.value(y), types.I8Ptr)}
		for _, n := range []int64{s.StrideA, s.StrideB, int64(s.Rows), int64(s.Words)} {
			args = append(args, intOf(types.I64, n))
		}
		r.at.NewCall(r.emulatedProduct(c.Intrinsic, x.Type.Elem, y.Type.Elem), args...)
	}
	return nil
}

// tileFunction is a function that is being written.
type tileFunction struct {
	*renderer
	fn *llir.Func
	at *llir.Block
}

// emulatedProduct is the function that adds the products of two tiles to the sums.
func (r *renderer) emulatedProduct(name string, a, b ir.DType) *llir.Func {
	if f := r.intrinsics[name]; f != nil {
		return f
	}
	var params []*llir.Param
	for _, p := range []string{"sums", "a", "b"} {
		params = append(params, llir.NewParam(p, types.I8Ptr))
	}
	for _, p := range []string{"stridea", "strideb", "rows", "words"} {
		params = append(params, llir.NewParam(p, types.I64))
	}
	fn := r.module.NewFunc(name, types.Void, params...)
	fn.Linkage = enum.LinkageInternal
	r.intrinsics[name] = fn
	f := &tileFunction{renderer: r, fn: fn, at: fn.NewBlock("start")}
	f.product(a, b)
	f.at.NewRet(nil)
	return fn
}

// loop counts from 0.
func (f *tileFunction) loop(count value.Value, body func(i value.Value)) {
	before := f.at
	head, exit := f.newBlock("emulated"), f.newBlock("emulatedend")
	head.Parent, exit.Parent = f.fn, f.fn
	f.fn.Blocks = append(f.fn.Blocks, head)
	before.NewBr(head)
	i := head.NewPhi(llir.NewIncoming(intOf(types.I64, 0), before))
	f.at = head
	body(i)
	next := f.at.NewAdd(i, intOf(types.I64, 1))
	i.Incs = append(i.Incs, llir.NewIncoming(next, f.at))
	f.at.NewCondBr(f.at.NewICmp(enum.IPredSLT, next, count), head, exit)
	f.fn.Blocks = append(f.fn.Blocks, exit)
	f.at = exit
}

// newBlock is a block that stands nowhere yet.
func (f *tileFunction) newBlock(role string) *llir.Block {
	f.blocks++
	return llir.NewBlock(fmt.Sprintf("%s%d", role, f.blocks))
}

// product adds sums of products.
func (f *tileFunction) product(a, b ir.DType) {
	p := f.fn.Params
	sum := elemType(ir.I32)
	if a == ir.BF16 {
		sum = types.Float
	}
	elements := int64(4 / a.Size())
	var parts []value.Value // of the elements of a word
	for range elements {
		parts = append(parts, f.at.NewAlloca(sum))
	}
	f.loop(p[5], func(m value.Value) {
		f.loop(intOf(types.I64, program.TileColumns), func(n value.Value) {
			for _, part := range parts {
				f.at.NewStore(splat(sum, 0, 0), part)
			}
			f.loop(p[6], func(k value.Value) {
				for j, part := range parts {
					x := f.element(p[1], a, f.at.NewMul(m, p[3]), f.at.NewMul(k, intOf(types.I64, 4)), intOf(types.I64, int64(j*a.Size())))
					y := f.element(p[2], b, f.at.NewMul(k, p[4]), f.at.NewMul(n, intOf(types.I64, 4)), intOf(types.I64, int64(j*b.Size())))
					f.at.NewStore(f.add(f.at.NewLoad(sum, part), f.multiply(x, y)), part)
				}
			})
			at := f.at.NewAdd(f.at.NewMul(m, intOf(types.I64, program.TileColumns*4)), f.at.NewMul(n, intOf(types.I64, 4)))
			place := f.at.NewBitCast(f.renderer.pointerAdd(f.at, types.I8, p[0], at), types.NewPointer(sum))
			var total value.Value = f.at.NewLoad(sum, parts[0])
			for _, part := range parts[1:] {
				total = f.add(total, f.at.NewLoad(sum, part))
			}
			old := f.at.NewLoad(sum, place)
			old.Align = 1
			store := f.at.NewStore(f.add(old, total), place)
			store.Align = 1
		})
	})
}

// element is a number of a tile, widened.
func (f *tileFunction) element(p value.Value, d ir.DType, offsets ...value.Value) value.Value {
	at := offsets[0]
	for _, o := range offsets[1:] {
		at = f.at.NewAdd(at, o)
	}
	t := elemType(d)
	load := f.at.NewLoad(t, f.at.NewBitCast(f.renderer.pointerAdd(f.at, types.I8, p, at), types.NewPointer(t)))
	load.Align = 1
	switch d {
	case ir.I8:
		return f.at.NewSExt(load, types.I32)
	case ir.U8:
		return f.at.NewZExt(load, types.I32)
	}
	return f.flushed(f.at.NewBitCast(f.at.NewShl(f.at.NewZExt(load, types.I32), intOf(types.I32, 16)), types.Float))
}

func (f *tileFunction) add(x, y value.Value) value.Value {
	if isFloat(x.Type()) {
		return f.flushed(f.at.NewFAdd(x, y))
	}
	return f.at.NewAdd(x, y)
}

func (f *tileFunction) multiply(x, y value.Value) value.Value {
	if isFloat(x.Type()) {
		return f.flushed(f.at.NewFMul(x, y))
	}
	return f.at.NewMul(x, y)
}

// flushed is a float, or zero of its sign in place of a number below the least normal one.
func (f *tileFunction) flushed(x value.Value) value.Value {
	bits := f.at.NewBitCast(x, types.I32)
	small := f.at.NewICmp(enum.IPredEQ, f.at.NewAnd(bits, intOf(types.I32, 0x7f800000)), intOf(types.I32, 0))
	zero := f.at.NewBitCast(f.at.NewAnd(bits, intOf(types.I32, -1<<31)), types.Float)
	return f.at.NewSelect(small, zero, x)
}
