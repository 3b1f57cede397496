package opt

import (
	"fmt"
	"slices"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// alikeValues are the narrow floats of a block that are computed alike: by trees of the same operations, whose leaves are anything
// else. No member of a class needs another.
type alikeValues struct {
	block   *program.Block
	makers  dep.Makers
	width   int // f32 lanes of a register
	classes []class
	of      map[*program.Value]member // values of the classes that are worth joining
}

// class are values that are computed alike, by instructions of the block.
type class struct{ instrs []int }

// member is a value's class and its number in it.
type member struct{ class, index int }

// findAlike finds the classes of a block whose joining saves more instructions than it takes.
func findAlike(b *program.Block, width int) *alikeValues {
	a := &alikeValues{block: b, makers: dep.MakersOf(b), width: width, of: make(map[*program.Value]member)}
	a.classify()
	a.prune()
	return a
}

// halfRegister reports floats of which a register is two, or a whole number that is larger.
func halfRegister(t program.Type, width int) bool {
	return !t.Ptr && t.Elem == ir.F32 && 2*t.Lanes <= width && width%t.Lanes == 0
}

// price is about how many instructions an operation of a register takes.
func price(in *program.Instr) int {
	if in.Op != program.Alu || !in.Result.Type.Elem.IsFloat() {
		return 1
	}
	switch in.Ir {
	case ir.OpExp2, ir.OpLog2, ir.OpSin:
		return 20
	case ir.OpMax, ir.OpMin, ir.OpFDiv, ir.OpRecip, ir.OpSqrt, ir.OpRsqrt:
		return 4
	}
	return 1
}

func (a *alikeValues) classify() {
	number, keys := make(map[string]int), make(map[*program.Value]string)
	for i := range a.block.Instrs {
		in := &a.block.Instrs[i]
		if !a.joinable(in) {
			continue
		}
		key := formOf(in, keys)
		n, known := number[key]
		if !known {
			n = len(a.classes)
			number[key] = n
			a.classes = append(a.classes, class{})
		}
		keys[in.Result] = fmt.Sprint("class ", n)
		a.classes[n].instrs = append(a.classes[n].instrs, i)
	}
	for n, c := range a.classes {
		if len(c.instrs) > 1 && !a.dependent(c) {
			a.takeIn(n)
		}
	}
}

// joinable reports an operation of narrow floats lane by lane, or a choice of the lanes of one value.
func (a *alikeValues) joinable(in *program.Instr) bool {
	if in.Result == nil || !halfRegister(in.Result.Type, a.width) {
		return false
	}
	from := in.Args
	switch in.Op {
	case program.Alu:
		return !slices.ContainsFunc(from, func(v *program.Value) bool { return v.Type.Ptr || v.Type.Lanes != in.Result.Type.Lanes })
	case program.Shuffle:
		return from[0] == from[1] && a.width%from[0].Type.Lanes == 0 && !slices.Contains(in.Mask, -1)
	}
	return false
}

// formOf is what alike operations have in common. Operands without a class are put together whatever makes them.
func formOf(in *program.Instr, keys map[*program.Value]string) string {
	var s strings.Builder
	fmt.Fprint(&s, in.Op, in.Ir, in.Result.Type, in.Mask)
	for _, v := range in.Args {
		if keys[v] != "" {
			s.WriteString(keys[v])
		} else {
			fmt.Fprint(&s, v.Type)
		}
	}
	return s.String()
}

// dependent reports a class of which a member needs another: by way of a load, since trees of one form have one height.
func (a *alikeValues) dependent(c class) bool {
	first, seen := c.instrs[0], make(map[int]bool)
	var needs func(i int) bool
	needs = func(i int) bool {
		for _, v := range a.block.Instrs[i].Args {
			k, inside := a.makers[v]
			if !inside || k < first || seen[k] {
				continue
			}
			if seen[k] = true; slices.Contains(c.instrs, k) || needs(k) {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(c.instrs, needs)
}

// circular reports classes that need one another, by way of loads.
func (a *alikeValues) circular() bool {
	const under, over = 1, 2
	state := make(map[int]int) // of instructions; a class has that of its first one
	var needsItself func(i int) bool
	needsItself = func(i int) bool {
		together := []int{i}
		if m, joined := a.of[a.block.Instrs[i].Result]; joined {
			together = a.classes[m.class].instrs
		}
		first := together[0]
		if state[first] != 0 {
			return state[first] == under
		}
		state[first] = under
		for _, k := range together {
			for _, v := range a.block.Instrs[k].Args {
				if at, inside := a.makers[v]; inside && needsItself(at) {
					return true
				}
			}
		}
		state[first] = over
		return false
	}
	return slices.ContainsFunc(lists.Upto(len(a.block.Instrs)), needsItself)
}

// prune leaves out classes whose joining takes more than it saves, until none is left.
func (a *alikeValues) prune() {
	users := make(map[*program.Value][]*program.Instr)
	for i := range a.block.Instrs {
		in := &a.block.Instrs[i]
		for _, v := range in.Args {
			users[v] = append(users[v], in)
		}
	}
	for again := true; again; {
		again = false
		for n := len(a.classes) - 1; n >= 0; n-- {
			if c := a.classes[n]; a.isJoined(n) && a.saves(c) <= a.takes(c, users) {
				a.leaveOut(n)
				again = true
			}
		}
	}
}

func (a *alikeValues) isJoined(n int) bool { return a.joined(a.result(a.classes[n], 0)) }

func (a *alikeValues) takeIn(n int) {
	for k := range a.classes[n].instrs {
		a.of[a.result(a.classes[n], k)] = member{n, k}
	}
}

func (a *alikeValues) leaveOut(n int) {
	for k := range a.classes[n].instrs {
		delete(a.of, a.result(a.classes[n], k))
	}
}

func (a *alikeValues) result(c class, k int) *program.Value {
	return a.block.Instrs[c.instrs[k]].Result
}

// operands are the k-th operands of a class.
func (a *alikeValues) operands(c class, k int) []*program.Value {
	var list []*program.Value
	for _, i := range c.instrs {
		list = append(list, a.block.Instrs[i].Args[k])
	}
	return list
}

// saves is how many instructions are left out when a class is joined.
func (a *alikeValues) saves(c class) int {
	n, lanes := len(c.instrs), a.result(c, 0).Type.Lanes
	return (n - (n*lanes+a.width-1)/a.width) * price(&a.block.Instrs[c.instrs[0]])
}

// takes is how many are added: operands are put together, and results taken apart.
func (a *alikeValues) takes(c class, users map[*program.Value][]*program.Instr) (added int) {
	for k := range a.block.Instrs[c.instrs[0]].Args {
		added += a.packing(a.operands(c, k))
	}
	for k := range c.instrs {
		if slices.ContainsFunc(users[a.result(c, k)], func(in *program.Instr) bool { return !a.joined(in.Result) && !spreads(in) }) {
			added++
		}
	}
	return added
}

// packing is about how many instructions put values together. Numbers and truth values of points are mostly
// steps from one another, or comparisons of such.
func (a *alikeValues) packing(values []*program.Value) int {
	v := values[0]
	switch {
	case allAre(values, v) || v.Type.Lanes >= a.width:
		return 0
	case a.ofOneClass(values) && len(values) == len(a.classes[a.of[v].class].instrs):
		return 0
	case a.ofOneClass(values), !v.Type.Elem.IsFloat():
		return 2
	}
	return len(values)
}

func (a *alikeValues) joined(v *program.Value) bool {
	_, joined := a.of[v]
	return joined
}

// ofOneClass reports values of one class that is joined.
func (a *alikeValues) ofOneClass(values []*program.Value) bool {
	m, joined := a.of[values[0]]
	return joined && !slices.ContainsFunc(values, func(v *program.Value) bool {
		other, joined := a.of[v]
		return !joined || other.class != m.class
	})
}

func allAre(values []*program.Value, v *program.Value) bool {
	return !slices.ContainsFunc(values, func(w *program.Value) bool { return w != v })
}

// spreads reports an instruction that takes lanes of one value: it can take those of a register that has them.
func spreads(in *program.Instr) bool {
	return in.Op == program.Broadcast || in.Op == program.Shuffle && in.Args[0] == in.Args[1]
}
