package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tgc/target"
)

// Keep adds the Opts of a list that the kernel accepts after those before, as Plan.Extend does.
func (r *Reader) Keep(opts []Opt) Plan {
	if _, _, err := r.read(Plan{opts}); err == nil {
		return Plan{opts}
	}
	return r.extend(Plan{}, opts)
}

// Canonical is what a plan says, in a form that does not depend on how it says it: plans whose
// forms are equal give one program. Text is the form; Copies is how often the code of the
// innermost loop is repeated, and Apart the form without what makes copies.
type Canonical struct {
	Text   string
	Apart  string
	Copies int64
}

// errExtent is wrapped by the error of sub-axes that have more elements than their axis.
var errExtent = errors.New("more elements in sub-axes than the axis has")

// Canonical reads a plan. It refuses what Legality does, and sub-axes that are too large for
// their axis or leave no place for a tile of MMA, which are refused when a plan is lowered.
func (r *Reader) Canonical(p Plan) (c Canonical, err error) {
	axes, global, err := r.read(p)
	if err != nil {
		return c, err
	}
	c.Copies = 1
	matrix := slices.ContainsFunc(axes, func(x AxisPlan) bool { return x.Has(Matrix) })
	if matrix && r.desc.Kind == target.GPU {
		if err := checkMatrixTile(axes); err != nil {
			return c, err
		}
	}
	var text, apart strings.Builder
	for i := range axes {
		x := &axes[i]
		whole, err := x.resolve(matrix)
		if err != nil {
			return c, err
		}
		x.print(&text, whole, func(Segment) bool { return true })
		x.print(&apart, whole, func(s Segment) bool { return s.Role != Unroll })
		for _, s := range x.Segments {
			if s.Role == Unroll {
				c.Copies = min(c.Copies*max(s.Size, 1), 1<<40)
			}
		}
	}
	for o := range global.Buffers {
		if r.idle(o) {
			delete(global.Buffers, o)
		}
	}
	rest := global.text()
	c.Text, c.Apart = text.String()+rest, apart.String()+rest
	return c, nil
}

// resolve gives segments that are all that is left their sizes, and drops those of one element.
// whole says that nothing is left. Tiles of matrix instructions may stand over the axis's end.
func (x *AxisPlan) resolve(matrix bool) (whole bool, err error) {
	size, constant := x.Axis.Size()
	if !constant || matrix || x.Tile > 0 || x.Pack {
		return false, nil
	}
	at := int64(1)
	var list []Segment
	for _, s := range x.Segments {
		if s.Size == 0 {
			s.Size = max((size+at-1)/at, 1)
		}
		if at*s.Size >= 2*size {
			return false, fmt.Errorf("kernel: plan: %s: %w: %d, the extent is %d", x.Axis.Name, errExtent, at*s.Size, size)
		}
		if at *= s.Size; s.Size > 1 {
			list = append(list, s)
		}
	}
	x.Segments = list
	return at >= size, nil
}

// checkMatrixTile refuses what lowering a plan with matrix instructions of a warp does: axes without a place for the tile, and
// more elements in sub-axes than an axis has, but for those of the tile itself.
func checkMatrixTile(axes []AxisPlan) error {
	for _, lowest := range [][]Segment{RowSegments, ColumnSegments} {
		if !slices.ContainsFunc(axes, func(x AxisPlan) bool { return x.Axis.Kind == StoreAxis && StartsWith(x.Segments, lowest) }) {
			return fmt.Errorf("kernel: plan: MMA without an axis that has %s %d; %s %d lowest", lowest[0].Role, lowest[0].Size, lowest[1].Role, lowest[1].Size)
		}
	}
	for _, x := range axes {
		size, constant := x.Axis.Size()
		if !constant || x.Tile > 0 || x.Pack {
			continue
		}
		at, side := int64(1), IsMatrixSide(x.Segments)
		for k, s := range x.Segments {
			n := s.Size
			if n == 0 {
				n = max((size+at-1)/at, 1)
			}
			if at *= n; at >= 2*size && !(side && k < len(RowSegments)) {
				return fmt.Errorf("kernel: plan: %s: %w: %d, the extent is %d", x.Axis.Name, errExtent, at, size)
			}
		}
	}
	return nil
}

// print writes what a plan says of an axis.
func (x *AxisPlan) print(out *strings.Builder, whole bool, which func(Segment) bool) {
	fmt.Fprintf(out, "%s:", x.Axis.Name)
	for _, s := range x.Segments {
		if which(s) {
			fmt.Fprintf(out, " %s %d", s.Role, s.Size)
		}
	}
	if !whole {
		fmt.Fprintf(out, " rest %s", x.Rest)
	}
	fmt.Fprintf(out, " %t %d %t %d %t %t %d %t\n", x.Stage, x.StageAmount, x.Pack, x.PackWords, x.Dot, x.Scatter, x.Tile, x.Apart)
}

// text is what a plan says of the whole kernel.
func (g *Global) text() string {
	var out strings.Builder
	fmt.Fprintln(&out, g.FMA, g.Groups, g.Program)
	for _, b := range g.BufferOpts() {
		fmt.Fprintln(&out, b, g.Buffers[b])
	}
	for _, s := range g.Swaps {
		fmt.Fprintln(&out, s[0].Arg, s[1].Arg)
	}
	return out.String()
}
