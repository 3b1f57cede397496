package program

import (
	"slices"
	"strconv"
	"strings"
)

// Options are what a plan may choose of the passes that make a program, of those over it
// and of how it is printed. They change how fast a program is, not what it computes. The zero value
// leaves all of them as they usually are.
type Options [numOptions]int

// Option is one of them.
type Option uint8

// The options.
const (
	NoOption Option = iota
	Ahead
	Order
	Refill
	Reread
	Spare
	Advance
	Late
	Blocks
	Regs
	Trigger
	Turns
	Panel
	Rotate
	Keep
	Units
	Chunk
	Lines
	Parts
	Chains
	Fill
	Loads
	Inline
	Carveout
	Sums
	numOptions
)

// optionInfo is a row of the table of options: values are least to most, or words.
type optionInfo struct {
	name  string
	usual int // where nothing is chosen; 0: found from the program
	least int // 0: 1
	most  int
	words []string // of the values 1, 2, ..; nil: numbers
}

var optionTable = [numOptions]optionInfo{
	// Registers of a thread that wait for loads issued early.
	Ahead: {name: "ahead", usual: 64, most: 255},
	// Registers of loads before the wait between which they keep their order. ptxas sorts
	// loads by what their addresses take, planes of scales last, so that the first row
	// could not be summed up before the last one had come. H200, gate and up of LLaMA 3.2
	// 1B in int8: 9.3 -> 8.5 us.
	Order: {name: "order", usual: 16, most: 255},
	// Whether registers of used weights take those of later rows.
	Refill: {name: "refill", usual: 1, words: []string{"on", "off"}},
	// Whether activations that rows share are read anew for each; else by the registers that
	// weights need.
	Reread: {name: "reread", words: []string{"always", "never"}},
	// Registers that a program seems to need and ptxas does without: it takes lanes out of
	// vectors where they are used, and computes values late. With 50, 28 and 12 LLaMA 3.2 1B
	// Q6_K makes 1,408, 1,356 and 1,355 tok/s in exact mode on an H200; without a bound,
	// spills take what loads gain.
	Spare: {name: "spare", usual: 50, most: 255},
	// Registers of a thread that hold loads of any kind when its block meets for the first
	// time: with more, weights that were loaded early spill, which waits for them.
	Advance: {name: "advance", usual: 80, most: 255},
	// Bytes of weights that a thread loads after a division, from which divisions wait for
	// the sums of all rows. H200: gate and up of LLaMA 3.2 1B, with 144 bytes, 8.45 -> 8.16
	// us in int8 and 8.75 -> 8.36 in i16; of Qwen3 1.7B, with 64, 6.24 -> 6.49, for more
	// registers are in use.
	Late: {name: "late", usual: 96, most: 1 << 16},
	// Blocks of a multiprocessor whose registers the assembler shares it among.
	Blocks: {name: "blocks", most: 32},
	// Registers of a thread, at most.
	Regs: {name: "regs", least: 24, most: 255},
	// Where a block lets the next kernel start.
	Trigger: {name: "trigger", usual: 1, words: []string{"start", "loads", "wait", "end"}},
	// Sets of tiles in shared memory: with two, one is filled while the block computes
	// with the other.
	Turns: {name: "turns", usual: 2, most: 2},
	// Registers of a thread that hold what the next iteration's tiles are made of.
	Panel: {name: "panel", usual: 64, most: 255},
	// When loops load the weights of their next iteration: first of all, after the last use
	// of this one's, or not; else by the registers and by what they compute.
	Rotate: {name: "rotate", words: []string{"early", "late", "off"}},
	// Registers that a loop along a row, which carries sums, must leave over for that. H200,
	// LLaMA 3.2 3B Q6_K: int8 792 -> 860 tokens a second, i16 735 -> 803, where 87 are left;
	// in exact mode 15 are, and 607 -> 600.
	Keep: {name: "keep", usual: 40, most: 255},
	// The order of work units towards whose end loops are longer: long ones first on a GPU,
	// long and short in turn on a CPU; or as they are numbered.
	Units: {name: "units", usual: 1, words: []string{"long", "plain"}},
	// Work units of which workers of a CPU take multiples.
	Chunk: {name: "chunk", usual: 1, most: 1 << 20},
	// Lines of a stream that one iteration prefetches.
	Lines: {name: "lines", usual: 64, most: 256},
	// Parts of a block that are combined without a loop.
	Parts: {name: "parts", usual: 8, most: 32},
	// Accumulators of a maximum, minimum or product in flight: a maximum that keeps NaN and
	// the order of zeros takes some twelve cycles.
	Chains: {name: "chains", usual: 4, most: 16},
	// Points of a tile in shared memory that a thread makes without a loop.
	Fill: {name: "fill", usual: 8, most: 64},
	// Loads of a stage that a thread has in flight.
	Loads: {name: "loads", usual: 4, most: 64},
	// Operations of a value that threads compute again instead of sharing it in a stage.
	Inline: {name: "inline", usual: 8, most: 64},
	// KB of a multiprocessor's first cache that are shared memory while the kernel runs. What is
	// best depends on the kernels around it, which run on the same multiprocessors: H200, 15 steps: search over
	// their kernels gains 0 to 6.7 %, and no one division suits all (docs/bench/h200-carveouts.txt).
	Carveout: {name: "carveout", least: 8, most: 228},
	// Whether sums of different packed weights share a loop of a CPU; else by the registers that both need.
	Sums: {name: "sums", words: []string{"together", "apart"}},
}

// Of is the value of an option.
func (o *Options) Of(k Option) int {
	if o[k] == 0 {
		return optionTable[k].usual
	}
	return o[k]
}

// Is reports an option with words.
func (o *Options) Is(k Option, word string) bool {
	words := optionTable[k].words
	return o.Of(k) > 0 && words[o.Of(k)-1] == word
}

// String is the option's name in the text form.
func (k Option) String() string { return optionTable[k].name }

// Usual is the value where nothing is chosen; 0: it is found from the program.
func (k Option) Usual() int { return optionTable[k].usual }

// Least is the smallest value.
func (k Option) Least() int { return max(optionTable[k].least, 1) }

// Most is the largest value.
func (k Option) Most() int { return max(optionTable[k].most, len(optionTable[k].words)) }

// Words are those that stand for the values 1, 2, ..; nil: numbers do.
func (k Option) Words() []string { return optionTable[k].words }

// String lists those that are chosen, a name and a value each.
func (o *Options) String() string {
	var list []string
	for k, v := range o {
		if v != 0 {
			list = append(list, Option(k).String(), strconv.Itoa(v))
		}
	}
	return strings.Join(list, " ")
}

// Parse notes one of what String lists; false: there is no such option or value.
func (o *Options) Parse(name string, value int) bool {
	k := 1 + slices.IndexFunc(optionTable[1:], func(row optionInfo) bool { return row.name == name })
	if k == 0 || value < Option(k).Least() || value > Option(k).Most() {
		return false
	}
	o[k] = value
	return true
}

// Merge takes the larger values of two parts of a program.
func (o *Options) Merge(with *Options) {
	for k := range o {
		o[k] = max(o[k], with[k])
	}
}
