package llvm

import (
	"errors"
	"fmt"
	"slices"

	llir "github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/ir/program"
)

// Matrix tiles (program.TileDot). Tile registers have numbers in the text, so that LLVM has
// nothing to decide about them: of each shape of a kernel's products those of sums, rows of a and
// rows of b; two of sums and of b and four of a where there is one shape, so that products that
// follow each other do not wait for the registers of the one before, and read the same a once.

const (
	tileRegisters = 8
	tilesOfShape  = 3
	keptTiles     = 4 // of a, where all products have one shape
	tileRowBytes  = 64
	tileBytes     = 64 // of a configuration
	tileColumns   = 16 // in a configuration: where the bytes of each tile's rows stand
	tileRows      = 48 // and where their numbers do
)

// tileShape is what a configuration says of the registers of a product.
type tileShape struct{ rows, words int }

// tileSet is the registers of a shape.
type tileSet struct {
	sums, a, b []int      // registers of each side
	next, turn int        // those to be used, of sums and b, and of a
	kept       []keptTile // what is in those of a
	block      *llir.Block
}

// keptTile is what a register was loaded from.
type keptTile struct {
	p      *program.Value
	stride int64
}

// configureTiles gives out the tile registers of the program, if it has any TileDot, and
// loads the configuration at the start of the function.
func (r *renderer) configureTiles() error {
	var shapes []tileShape
	r.tiles = make(map[tileShape]*tileSet)
	r.program.Body.Each(func(in *program.Instr) {
		if in.Op != program.TileDot {
			return
		}
		if s := (tileShape{in.Tile.Rows, in.Tile.Words}); r.tiles[s] == nil {
			r.tiles[s] = &tileSet{}
			shapes = append(shapes, s)
		}
	})
	if len(shapes) == 0 {
		return nil
	}
	if r.desc == nil || !r.desc.HasTiles() {
		return errors.New("the target has no tile instructions")
	}
	if r.desc.EmulatesTiles() {
		r.tiles = nil
		return nil
	}
	if len(shapes)*tilesOfShape > tileRegisters {
		return fmt.Errorf("%d shapes of tiles, at most %d have registers", len(shapes), tileRegisters/tilesOfShape)
	}
	config := make([]byte, tileBytes)
	config[0] = 1 // the palette of eight tiles
	take := func(number, rows, bytes int) int {
		config[tileColumns+2*number], config[tileRows+number] = byte(bytes), byte(rows)
		return number
	}
	kept := keptTiles
	if len(shapes) > 1 {
		kept = 1
	}
	next := 0
	for _, s := range shapes {
		set := r.tiles[s]
		for range min(kept, 2) {
			set.sums = append(set.sums, take(next, s.rows, tileRowBytes))
			set.b = append(set.b, take(next+1, s.words, tileRowBytes))
			next += 2
		}
		for range kept {
			set.a = append(set.a, take(next, s.rows, 4*s.words))
			next++
		}
	}
	t := types.NewVector(tileBytes, types.I8)
	at := llir.NewAlloca(t)
	at.Align = tileBytes
	r.entry.Insts = append(r.entry.Insts, at)
	store := r.at.NewStore(vectorLiteral(t, func(i int) string { return word(types.I8, int64(int8(config[i])), 0) }), at)
	store.Align = tileBytes
	r.intrinsic("llvm.x86.ldtilecfg", types.Void, r.bitcast(at, types.I8Ptr))
	return nil
}

// releaseTiles ends the use of tile registers.
func (r *renderer) releaseTiles() {
	if len(r.tiles) > 0 {
		r.intrinsic("llvm.x86.tilerelease", types.Void)
	}
}

// tileDot zeroes the sums, adds the product of each pair and stores them.
func (r *renderer) tileDot(in *program.Instr) error {
	if r.desc.EmulatesTiles() {
		return r.emulatedTileDot(in)
	}
	set := r.tiles[tileShape{in.Tile.Rows, in.Tile.Words}]
	sums, b := tileNumber(set.sums[set.next%len(set.sums)]), tileNumber(set.b[set.next%len(set.b)])
	set.next++
	r.intrinsic("llvm.x86.tilezero", types.Void, sums)
	for i := 1; i < len(in.Args); i += 2 {
		x, y := in.Args[i], in.Args[i+1]
		c := r.desc.TileDot(x.Type.Elem.String(), y.Type.Elem.String())
		if c == nil {
			return fmt.Errorf("the target has no product of tiles of %s and %s", x.Type.Elem, y.Type.Elem)
		}
		a := r.keptTile(set, x, in.Tile.StrideA)
		if i < 3 || y != in.Args[i-1] {
			r.tileMemory("llvm.x86.tileloadd64", b, y, in.Tile.StrideB)
		}
		r.intrinsic(c.Intrinsic, types.Void, sums, a, b)
	}
	r.tileMemory("llvm.x86.tilestored64", sums, in.Args[0], tileRowBytes)
	return nil
}

// keptTile is the register of the tile at p, which is loaded where no product before it in the block did.
func (r *renderer) keptTile(set *tileSet, p *program.Value, stride int64) value.Value {
	if set.block != r.at {
		set.block, set.kept = r.at, make([]keptTile, len(set.a))
	}
	tile := keptTile{p, stride}
	if i := slices.Index(set.kept, tile); i >= 0 {
		return tileNumber(set.a[i])
	}
	i := set.turn % len(set.a)
	set.turn++
	set.kept[i] = tile
	a := tileNumber(set.a[i])
	r.tileMemory("llvm.x86.tileloadd64", a, p, stride)
	return a
}

// forgetTiles is called where memory may change that tiles were loaded from: sums of tiles lie apart.
func (r *renderer) forgetTiles() {
	for _, set := range r.tiles {
		set.block = nil
	}
}

func tileNumber(i int) value.Value { return intOf(types.I8, int64(i)) }

// tileMemory loads or stores a tile whose rows are stride bytes apart.
func (r *renderer) tileMemory(name string, tile value.Value, p *program.Value, stride int64) {
	r.intrinsic(name, types.Void, tile, r.bitcast(r.value(p), types.I8Ptr), intOf(types.I64, stride))
}
