package llvm

import (
	"math"

	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/bounds"
)

// Dot products of bytes by pairs. pmaddubsw multiplies unsigned bytes with signed ones and adds two
// neighbours in 16 bits, which saturate; pmaddwd does the same of signed words in 32 bits, exactly.
// Dots that go into one another are summed in 16 bits as long as no sum can saturate.
//
// Of two signed sides x is one that is known not to be -128: x*y = sign(x, y)*abs(y), where abs(y) is
// an unsigned byte for all y, -128 too, and often one of many x.

// pairNames are the intrinsics of both for a register of so many lanes of 32 bits.
var pairNames = map[int]struct{ bytes, words string }{
	4:  {"llvm.x86.ssse3.pmadd.ub.sw.128", "llvm.x86.sse2.pmadd.wd"},
	8:  {"llvm.x86.avx2.pmadd.ub.sw", "llvm.x86.avx2.pmadd.wd"},
	16: {"llvm.x86.avx512.pmaddubs.w.512", "llvm.x86.avx512.pmaddw.d.512"},
}

// signNames are the intrinsics that give a register of so many lanes the signs of another.
var signNames = map[int]string{4: "llvm.x86.ssse3.psign.b.128", 8: "llvm.x86.avx2.psign.b"}

// mostPairs is the largest sum in 16 bits.
const mostPairs = 1<<15 - 1

// pairChain is a dot whose pairs are added in 16 bits: all of them together are at most so much.
type pairChain struct {
	most  int64
	swaps bool        // of two signed sides y is the one that is not -128
	after *pairChain  // the dot whose pairs these are added to; nil for the first
	ends  bool        // nothing is added to these
	acc   value.Value // what the first one adds to
	sums  value.Value
}

// chainFinder finds the dots of a program whose pairs do not saturate.
type chainFinder struct {
	bounds  map[*program.Value]bounds.Interval
	readers map[*program.Value]int
	chains  map[*program.Value]*pairChain
}

func pairChains(p *program.Program) map[*program.Value]*pairChain {
	f := &chainFinder{bounds.Of(p), p.Readers(), make(map[*program.Value]*pairChain)}
	f.block(p.Body)
	return f.chains
}

// block finds the dots of a block: what a loop reads of another one is read again.
func (f *chainFinder) block(b *program.Block) {
	own := make(map[*program.Value]*pairChain)
	for i := range b.Instrs {
		in := &b.Instrs[i]
		for inner := range in.Blocks() {
			f.block(inner)
		}
		if in.Op != program.Dot4 {
			continue
		}
		c := f.chain(in)
		if c == nil {
			continue
		}
		most := c.most
		if before := own[in.Args[0]]; before != nil && f.readers[in.Args[0]] == 1 && before.most+most <= mostPairs {
			c.after, c.most = before, before.most+most
			before.ends = false
		}
		own[in.Result], f.chains[in.Result] = c, c
	}
}

// chain is a dot of its own, nil for one whose pairs may saturate.
func (f *chainFinder) chain(in *program.Instr) *pairChain {
	x, y := dotFactors(in)
	a, b := f.magnitude(x), f.magnitude(y)
	c := &pairChain{most: 2 * a * b, ends: true}
	if x.Type.Elem == ir.I8 {
		c.swaps = a > b
		if min(a, b) > math.MaxInt8 {
			return nil // -128 has no other sign
		}
	}
	if y.Type.Elem != ir.I8 || c.most > mostPairs {
		return nil
	}
	return c
}

// magnitude is the largest of a value of bytes without its sign.
func (f *chainFinder) magnitude(v *program.Value) int64 {
	b, known := f.bounds[v]
	if !known {
		lo, hi := v.Type.Elem.IntRange()
		b = bounds.Interval{Lo: lo, Hi: hi}
	}
	return max(-b.Lo, b.Hi)
}

// dotByPairs adds pairs of bytes where no sum saturates, else products of the even bytes and of the odd
// ones as words.
func (r *renderer) dotByPairs(in *program.Instr, d byteDot) value.Value {
	c := r.pairs[in.Result]
	if c == nil {
		return r.addWords(r.addWords(r.value(in.Args[0]), r.evenBytes(d.x, d.xSigned), r.evenBytes(d.y, d.ySigned)),
			r.oddBytes(d.x, d.xSigned), r.oddBytes(d.y, d.ySigned))
	}
	if d.xSigned {
		d = r.withSignMoved(d, c.swaps)
	}
	c.sums = r.registers(func(n int, v ...value.Value) value.Value {
		return r.intrinsic(pairNames[n].bytes, types.NewVector(uint64(2*n), types.I16), v...)
	}, d.x, d.y)
	if c.after == nil {
		c.acc = r.value(in.Args[0])
	} else {
		c.acc, c.sums = c.after.acc, r.at.NewAdd(c.after.sums, c.sums)
	}
	if !c.ends {
		return c.acc // nothing reads it
	}
	return r.addWords(c.acc, c.sums, intOf(c.sums.Type(), 1))
}

// withSignMoved is a dot of two signed sides with one that is not, abs(y), and the other with its signs.
func (r *renderer) withSignMoved(d byteDot, swaps bool) byteDot {
	if swaps {
		d.x, d.y = d.y, d.x
	}
	zero := intOf(d.y.Type(), 0)
	negative := r.at.NewICmp(enum.IPredSLT, d.y, zero)
	abs := r.at.NewSelect(negative, r.at.NewSub(zero, d.y), d.y)
	if r.desc.VectorBytes > 32 { // by masks, which are of y alone
		return byteDot{x: abs, y: r.at.NewSelect(negative, r.at.NewSub(zero, d.x), d.x), ySigned: true}
	}
	signed := r.registers(func(n int, v ...value.Value) value.Value {
		return r.intrinsic(signNames[n], v[0].Type(), v...)
	}, d.x, d.y)
	return byteDot{x: abs, y: signed, ySigned: true}
}

// addWords adds the sums of two products of words each.
func (r *renderer) addWords(acc, x, y value.Value) value.Value {
	return r.at.NewAdd(acc, r.registers(func(n int, v ...value.Value) value.Value {
		return r.intrinsic(pairNames[n].words, types.NewVector(uint64(n), types.I32), v...)
	}, x, y))
}

// registers does with whole registers what do does with two of n lanes of 32 bits, of what has as many
// bits or more, or fewer.
func (r *renderer) registers(do func(n int, v ...value.Value) value.Value, v ...value.Value) value.Value {
	perLane := 32 / int(v[0].Type().(*types.VectorType).ElemType.(*types.IntType).BitSize)
	n := lanesOf(v[0]) / perLane
	full := fewestDotLanes
	for full < n {
		full *= 2
	}
	switch {
	case full != n:
		whole := r.registers(do, lists.Map(v, func(v value.Value) value.Value { return r.widenTo(v, full*perLane) })...)
		return r.slice(whole, 0, n*lanesOf(whole)/full)
	case 4*n > r.desc.VectorBytes:
		half := func(k int) value.Value {
			return r.registers(do, lists.Map(v, func(v value.Value) value.Value { return r.slice(v, k*lanesOf(v)/2, lanesOf(v)/2) })...)
		}
		return r.join(half(0), half(1))
	}
	return do(n, v...)
}

// evenBytes are the bytes 0, 2 and so on as words.
func (r *renderer) evenBytes(bytes value.Value, signed bool) value.Value {
	v := r.words(bytes)
	eight := intOf(v.Type(), 8)
	if signed {
		return r.at.NewAShr(r.at.NewShl(v, eight), eight)
	}
	return r.at.NewAnd(v, intOf(v.Type(), 255))
}

// oddBytes are the bytes 1, 3 and so on.
func (r *renderer) oddBytes(bytes value.Value, signed bool) value.Value {
	v := r.words(bytes)
	eight := intOf(v.Type(), 8)
	if signed {
		return r.at.NewAShr(v, eight)
	}
	return r.at.NewLShr(v, eight)
}

func (r *renderer) words(bytes value.Value) value.Value {
	return r.bitcast(bytes, types.NewVector(uint64(lanesOf(bytes)/2), types.I16))
}
