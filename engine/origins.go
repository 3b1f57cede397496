package engine

import (
	"slices"

	"tgc/ir"
)

// Origins says which nodes of the graph the kernels compute, in a compilation whose Control
// asks for Origins. Nodes are numbers, their names in its forms.
type Origins struct {
	// Of lists, for each kernel and the parts of merged ones, the nodes for which it
	// computes something, over all its launches.
	Of map[*Kernel][]int
	// As says which node has the place of another in the form of a kernel that several
	// launches share: the forms have the first one's.
	As map[int]int
}

// Origins finds the nodes of the graph in the kernels.
func (c *Compiled) Origins() Origins {
	byAST := make(map[*ir.UOp]*Kernel)
	for _, k := range c.Kernels {
		byAST[k.AST] = k
		for _, part := range k.Parts {
			byAST[part.AST] = part
		}
	}
	o := Origins{make(map[*Kernel][]int), make(map[int]int)}
	for _, launch := range c.Schedule.Launches {
		for _, scheduled := range launch.Kernels {
			canonical, _, became := ir.CanonicaliseNodes(c.arena, scheduled.AST)
			k := byAST[canonical]
			if k == nil {
				continue
			}
			for u, to := range became {
				from, first := scheduled.Origins.Of(u), k.origins.Of(to)
				if from == 0 || u.DType == ir.Idx {
					continue // an index may be that of another kernel, too
				}
				o.Of[k] = append(o.Of[k], from)
				if first != from && first != 0 {
					o.As[from] = max(o.As[from], first)
				}
			}
		}
	}
	for _, k := range c.Kernels {
		for _, part := range k.Parts {
			o.Of[k] = append(o.Of[k], o.Of[part]...)
		}
	}
	for k, list := range o.Of {
		slices.Sort(list)
		o.Of[k] = slices.Compact(list)
	}
	return o
}

// Prices are those of the cheapest plan of each number of threads a block among the
// candidates of the kernel, in nanoseconds, and the threads of the one that was chosen; nil
// where it was not chosen by its price.
func (k *Kernel) Prices() (byThreads map[int64]float64, chosen int64) {
	return k.choice.Prices, k.choice.BlockThreads
}
