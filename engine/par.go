package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/schedule"
	"tgc/target"
)

// mergeLaunches makes one kernel of the independent kernels of a launch (the
// lower half of rule R7): one grid, in which every block runs one of them. On a
// GPU a launch of one kernel behind one kernel can start early (programmatic
// dependent launch), one of several behind a join cannot, and every kernel
// alone fills fewer multiprocessors. A CPU starts a launch's kernels together
// anyway.
func mergeLaunches(ctx context.Context, s *state) error {
	s.out.apart = unmerged{slices.Clone(s.out.Kernels), slices.Clone(s.out.Launches)}
	if s.out.Target.Kind != target.GPU || s.config.Rules.Has(schedule.Par) {
		return nil
	}
	m := &merger{state: s, known: make(map[string]*Kernel), names: make(map[string]int)}
	for _, k := range s.out.Kernels {
		m.names[k.Name]++
	}
	for i, calls := range s.out.Launches {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.out.Launches[i] = m.launch(calls)
	}
	s.out.Kernels = s.out.Kernels[:0]
	seen := make(map[*Kernel]bool)
	for _, calls := range s.out.Launches {
		for _, c := range calls {
			if !seen[c.Kernel] {
				seen[c.Kernel] = true
				s.out.Kernels = append(s.out.Kernels, c.Kernel)
			}
		}
	}
	return nil
}

type merger struct {
	*state
	known map[string]*Kernel // by the parts; nil: they do not go together
	names map[string]int
}

// launch merges what goes together, in the order of the calls; what does not
// stays a kernel beside it.
func (m *merger) launch(calls []Call) []Call {
	if len(calls) < 2 {
		return calls
	}
	merged := []Call{calls[0]}
	var alone []Call
	for _, c := range calls[1:] {
		if trial := append(merged[:len(merged):len(merged)], c); m.kernel(trial) != nil {
			merged = trial
		} else {
			alone = append(alone, c)
		}
	}
	if len(merged) == 1 {
		return calls
	}
	joined := Call{Kernel: m.kernel(merged)}
	for _, c := range merged {
		joined.Args = append(joined.Args, c.Args...)
	}
	return append([]Call{joined}, alone...)
}

// kernel is the merged kernel of some calls, nil when there is none: a barrier
// would be missed by the idle threads of a narrow part, or the device lacks
// shared memory. The list holds at least two calls.
func (m *merger) kernel(calls []Call) *Kernel {
	var key strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&key, "%p ", c.Kernel)
	}
	if k, ok := m.known[key.String()]; ok {
		return k
	}
	var programs []*program.Program
	var slots []int
	for _, c := range calls {
		programs, slots = append(programs, c.Kernel.Program), append(slots, len(c.Args))
	}
	var k *Kernel
	var p *program.Program
	if m.mayIdle(programs) {
		p = opt.MergeGrids("", programs, slots)
	}
	if p != nil && program.VerifyGPU(p) == nil && program.SharedBytes(p) <= int64(m.out.Target.SharedBytes) {
		k = m.join(calls, p)
	}
	m.known[key.String()] = k
	return k
}

// mayIdle reports parts that may have blocks as wide as the widest, in which some threads do nothing. They take registers from the
// blocks beside them for as long as the part runs: few of them do where its threads wait for each other. None do where a warp's
// products by matrix instructions have as many sums as there are registers for it. What does not wait has ended soon.
func (m *merger) mayIdle(parts []*program.Program) bool {
	widest, idle := int64(0), int64(0)
	for _, p := range parts {
		widest = max(widest, p.Threads())
	}
	for _, p := range parts {
		if p.Threads() == widest {
			continue
		}
		waits, multiplies := false, false
		p.Body.Each(func(in *program.Instr) {
			waits = waits || in.Op == program.Barrier
			multiplies = multiplies || in.Op == program.Mma || in.Op == program.GroupMma
		})
		if waits && multiplies {
			return false
		}
		if waits {
			idle += p.Units() * (widest - p.Threads())
		}
	}
	return idle <= int64(m.out.Target.Tuning.IdleThreads)*int64(m.out.Target.Cost.Workers)
}

// join describes the merged kernel by its parts.
func (m *merger) join(calls []Call, p *program.Program) *Kernel {
	k := &Kernel{Program: p}
	var sinks []*ir.UOp
	var why []string
	shift := 0
	for _, c := range calls {
		k.Parts = append(k.Parts, c.Kernel)
		sinks = append(sinks, shiftSlots(m.out.arena, c.Kernel.AST, shift))
		why = append(why, c.Kernel.Why)
		shift += len(c.Args)
	}
	k.AST = m.out.arena.Make(ir.OpPar, ir.Void, nil, sinks...)
	k.Why = strings.Join(why, " | ")
	k.Name = uniqueName(m.names, fmt.Sprintf("par%d_%s", len(calls), calls[0].Kernel.Name))
	p.Name = k.Name
	return k
}

// shiftSlots renumbers the parameters of a kernel.
func shiftSlots(a *ir.Arena, sink *ir.UOp, by int) *ir.UOp {
	if by == 0 {
		return sink
	}
	with := make(map[*ir.UOp]*ir.UOp)
	for _, u := range ir.Toposort(sink) {
		if u.Op == ir.OpParam {
			arg := u.Arg.(ir.ParamArg)
			arg.Slot += by
			with[u] = a.Make(ir.OpParam, u.DType, arg, u.Src...)
		}
	}
	return a.Substitute(sink, with)
}
