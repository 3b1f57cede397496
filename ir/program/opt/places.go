package opt

import (
	"slices"

	"tgc/ir/program"
)

// inPlaces orders some instructions of a list, which nothing else keeps where they are, by the last of those that each waits for. own is
// the place of one that is waited for, asked once in the order of the list, from 1 to most; 0: it is none. What waits for none comes where it is used
// first, or stays at the head.
func inPlaces(instrs []program.Instr, begin, end, most int, own func(in *program.Instr) int, stays func(in *program.Instr) bool) []program.Instr {
	places := make(map[*program.Value]int) // 0: waits for none
	place := make([]int, end-begin)
	for i := range place {
		in := &instrs[begin+i]
		if place[i] = own(in); place[i] == 0 {
			for _, a := range in.Args {
				place[i] = max(place[i], places[a])
			}
		}
		places[in.Result] = place[i]
	}
	first := make(map[*program.Value]int) // where a value is used
	for i := end; i < len(instrs); i++ {
		instrs[i].EachUse(func(v *program.Value) { first[v] = most + 1 })
	}
	order := make([][]int, most+2)
	for i, at := range slices.Backward(place) {
		in := &instrs[begin+i]
		if user, used := first[in.Result]; used && at == 0 && !stays(in) {
			at = user
		}
		for _, a := range in.Args {
			if user, used := first[a]; !used || at < user {
				first[a] = at
			}
		}
		order[at] = append(order[at], begin+i)
	}
	out := slices.Clone(instrs[:begin])
	for _, list := range order {
		for _, i := range slices.Backward(list) {
			out = append(out, instrs[i])
		}
	}
	return append(out, instrs[end:]...)
}
