package state

import (
	"fmt"
	"strings"

	"tgc/ir"
	"tgc/schedule/expr"
)

// String prints the schedule: buffers, then launches with their kernels as
// loops over expressions.
func (s *Schedule) String() string {
	var b strings.Builder
	kernels := 0
	for _, l := range s.Launches {
		kernels += len(l.Kernels)
	}
	fmt.Fprintf(&b, "%d values, %d kernels, %d launches, arena %d bytes\n", s.Values, kernels, len(s.Launches), s.ArenaBytes)
	for i, l := range s.Launches {
		fmt.Fprintf(&b, "launch %d\n", i)
		for _, k := range l.Kernels {
			fmt.Fprintf(&b, "  kernel %s(%s)\n", k.Name, s.argText(k))
			for _, line := range strings.Split(strings.TrimRight(expr.KernelText(k.AST), "\n"), "\n") {
				b.WriteString("    " + line + "\n")
			}
		}
	}
	return b.String()
}

func (s *Schedule) argText(k *Kernel) string {
	parts := make([]string, len(k.Args))
	for slot, i := range k.Args {
		buf := s.Buffers[i]
		name := fmt.Sprintf("user%d", buf.UserID)
		if buf.UserID < 0 {
			name = fmt.Sprintf("temp@%d", buf.Offset)
		}
		format := buf.DType.String()
		if buf.Format != "" {
			format = buf.Format
		}
		parts[slot] = fmt.Sprintf("b%d=%s:%s", slot, name, format)
	}
	return strings.Join(parts, ", ")
}

// Schedule is the result: kernels in launches, and the buffers they use.
type Schedule struct {
	Buffers    []Buffer
	Launches   []Launch
	ArenaBytes int64 // size of the arena of temporaries
	Records    []Record
	Values     int       // values after rangeify, before any rule
	Decisions  Decisions // of Options.Decisions, those that some rule asked for
}

// Buffer is a user's buffer or a temporary.
type Buffer struct {
	UserID int64 // BufferArg.ID; -1: temporary
	DType  ir.DType
	Shape  []*ir.UOp
	Format string
	Bytes  int64 // upper bound; of a packed buffer 0: its format knows
	Offset int64 // in the arena, temporaries only
}

// Launch is a set of independent kernels that start together.
type Launch struct{ Kernels []*Kernel }

// Kernel is SINK(STORE...) with its arguments.
type Kernel struct {
	AST     *ir.UOp
	Args    []int // slot -> index in Schedule.Buffers
	Name    string
	Reasons []string   // what was fused into it and why, for people
	Origins ir.Origins // of its nodes; nil where nothing is traced
}
