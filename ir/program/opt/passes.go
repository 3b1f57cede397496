package opt

import (
	"context"
	"fmt"

	"tgc/ir/program"
	"tgc/pass"
	"tgc/target"
)

// State is what the passes over one program hand on.
type State struct {
	Program *program.Program
	Target  *target.Desc
}

// Run runs the table over a program as package kernel lowers it, which is changed,
// and gives the result.
func Run(p *program.Program, desc *target.Desc) (*program.Program, error) {
	s := &State{Program: p, Target: desc}
	if err := Passes.Run(context.Background(), s, p.Name, nil); err != nil {
		return nil, err
	}
	return s.Program, nil
}

// RunPass runs one row of the table on the text of a program and gives the text of the
// result. Both are verified.
func RunPass(ctx context.Context, name, text string, desc *target.Desc) (string, error) {
	row, ok := Passes.Row(name)
	if !ok {
		return "", fmt.Errorf("program: there is no pass %q", name)
	}
	p, err := program.Parse(text)
	if err != nil {
		return "", err
	}
	s := &State{Program: p, Target: desc}
	if err := verify(s); err != nil {
		return "", err
	}
	if err := Passes.RunRow(ctx, row, s, p.Name, &pass.Control{Verify: true}); err != nil {
		return "", err
	}
	return program.Print(s.Program), nil
}

func verify(s *State) error {
	if s.Target.Kind == target.GPU {
		return program.VerifyGPU(s.Program)
	}
	return program.Verify(s.Program)
}

// onGPU is a row that changes programs of GPUs in place.
func onGPU(info pass.Info, run func(p *program.Program, desc *target.Desc)) pass.Row[*State] {
	return on(target.GPU, info, run)
}

// onCPU is the same of programs of CPUs.
func onCPU(info pass.Info, run func(p *program.Program, desc *target.Desc)) pass.Row[*State] {
	return on(target.CPU, info, run)
}

func on(kind target.Kind, info pass.Info, run func(p *program.Program, desc *target.Desc)) pass.Row[*State] {
	info.From, info.To = pass.Program, pass.Program
	return pass.Row[*State]{Info: info, Run: func(_ context.Context, s *State) error {
		if s.Target.Kind == kind {
			run(s.Program, s.Target)
		}
		return nil
	}}
}

// alone is a pass that needs the program only.
func alone(run func(*program.Program)) func(*program.Program, *target.Desc) {
	return func(p *program.Program, _ *target.Desc) { run(p) }
}

// Properties that rows need and give.
const (
	oneOfEach    = "equal values are one"
	readsPlaced  = "reads of activations are where they stay"
	loadsRotated = "weights of the next rows are loaded ahead"
	loadsEarly   = "weights are loaded before the wait"
)

// Passes is the table of the passes over one program, in the order in which they run.
var Passes = pass.NewTable(pass.Table[*State]{
	Stage:  "program",
	Text:   func(s *State) string { return program.PrintOrigins(s.Program) },
	Verify: verify,
	Rows: []pass.Row[*State]{
		onGPU(pass.Info{
			Name: "eliminate-common-subexpressions", Gives: []string{oneOfEach},
			Doc: "let equal instructions be one, loads of memory that nothing writes among them",
			Why: "the fills of several shared arrays from one row are lowered apart, and load and fold the row once each",
		}, alone(eliminateCommonSubexpressions)),
		onGPU(pass.Info{
			Name: "transpose-bytes", Needs: []string{oneOfEach},
			Doc: "compute fields that lie side by side in bytes for the four bytes of a word together, a place at a time",
			Why: "each lane of a byte's fields has a shift of its own, which takes it out of the word: a shift, a mask and a permute for each weight",
		}, alone(transposeBytes)),
		onGPU(pass.Info{
			Name: "dot-fields", Needs: []string{oneOfEach},
			Doc: "let sums of bytes take the bits of weights where they lie, and shift the sums",
			Why: "a shift and a mask for each word, and the joining of what lies in several, are most of the instructions of weights of a few bits",
		}, alone(dotFields)),
		onGPU(pass.Info{
			Name: "join-bytes", Needs: []string{oneOfEach},
			Doc: "compute bytes of a word together where they are computed alike",
			Why: "scales of six bits that lie in two bytes take six instructions each; those of four groups lie side by side",
		}, alone(joinBytes)),
		onGPU(pass.Info{
			Name: "gather-fills", Needs: []string{oneOfEach},
			Doc: "move fills of shared arrays in front of an earlier barrier",
			Why: "the results of several tokens have stages of their own, each filled where its token's turn comes: the weights of all rows would be held, decoded, from one turn to the next",
		}, alone(gatherFills)),
		onGPU(pass.Info{
			Name: "eliminate-barriers",
			Doc:  "leave out barriers between accesses that touch no common memory",
			Why:  "every fill of a shared array is lowered with a barrier of its own",
		}, alone(eliminateBarriers)),
		onGPU(pass.Info{
			Name: "double-buffer",
			Doc:  "fill one set of shared-memory tiles while matrix instructions compute with the other",
			Why:  "with one set, each of the two phases waits at a barrier for the other",
		}, func(p *program.Program, desc *target.Desc) { doubleBuffer(p, int64(desc.SharedBytes), hasCopies(desc)) }),
		onGPU(pass.Info{
			Name: "prefetch-tiles",
			Doc:  "load what the next iteration's shared-memory tiles are made of before computing with this one's",
			Why:  "loops that double-buffer refuses still hide the latency of their loads",
		}, alone(prefetchTiles)),
		onGPU(pass.Info{
			Name: "set-cache-policies",
			Doc:  "mark loads of constant weights, wide ones as read once",
			Why:  "weights leave the first level of cache to activations",
		}, alone(setCachePolicies)),
		onGPU(pass.Info{
			Name: "guard-loads",
			Doc:  "load what a choice by equality takes only where it is taken",
			Why:  "the new row of a cache is one of all that attention visits, and a choice for each element of each row",
		}, alone(guardLoads)),
		onGPU(pass.Info{
			Name: "rematerialise-reads", Needs: []string{oneOfEach},
			Doc: "read activations anew in loops over rows where they would take the registers of weights",
			Why: "registers that hold activations over the whole loop cannot hold weights on their way",
		}, alone(rematerialiseReads)),
		onGPU(pass.Info{
			Name: "order-rows", Gives: []string{readsPlaced},
			Doc: "order the arithmetic of rows that are computed once by the activations it reads",
			Why: "with the activations of a row in registers, the weights of the last rows would be loaded after the first are used",
		}, alone(orderRows)),
		onGPU(pass.Info{
			Name: "order-products", Needs: []string{readsPlaced},
			Doc: "MMA: let arithmetic follow the matrix instruction of integers, or the weights, that it waits for, where that takes fewer registers",
			Why: "results are summed one lane after the other, and those of all copies would wait for the last lane",
		}, alone(orderProducts)),
		onGPU(pass.Info{
			Name: "exchange-units", Needs: []string{oneOfEach, readsPlaced},
			Doc: "MMA: let the lanes of a quad load up to 16 bytes for each other, and exchange what each wants of a row",
			Why: "a few bytes of each of eight rows take the first level of cache as long as a line of each",
		}, alone(exchangeUnits)),
		onGPU(pass.Info{
			Name: "join-loads", Needs: []string{oneOfEach, readsPlaced},
			Doc: "let loads of bytes that lie side by side be one",
			Why: "copies of a sum load their blocks' scales by themselves, two bytes each, which takes the first level of cache as long as 16",
		}, alone(joinLoads)),
		onGPU(pass.Info{
			Name: "rotate-loops", Needs: []string{readsPlaced}, Gives: []string{loadsRotated},
			Doc: "load the weights of a loop's next iteration in this one, and the first ones before the loop",
			Why: "memory is read while the block computes",
		}, alone(rotateLoops)),
		onGPU(pass.Info{
			Name: "hoist-early-loads", Needs: []string{loadsRotated}, Gives: []string{loadsEarly},
			Doc: "issue the loads of weights before waiting for the kernel before; what does not fit takes registers as they come free",
			Why: "the latency of memory passes while the kernel before ends",
		}, alone(hoistEarlyLoads)),
		onGPU(pass.Info{
			Name: "sink-epilogues", Needs: []string{loadsEarly},
			Doc: "move what follows the sums of rows, divisions last, after the loads of all rows",
			Why: "a division has a branch that assemblers move no load across",
		}, alone(sinkEpilogues)),
		onGPU(pass.Info{
			Name: "sink-conversions", Needs: []string{loadsEarly},
			Doc: "convert weights that were loaded before the wait where they are first used",
			Why: "a conversion that comes before the block's other work stops it until the weights have come",
		}, alone(sinkConversions)),
		onGPU(pass.Info{
			Name: "advance-loads", Needs: []string{loadsEarly},
			Doc: "issue loads of activations that come after a block's first barrier together with those before it",
			Why: "weights of a norm, residuals of rows: one trip to memory instead of two",
		}, alone(advanceLoads)),
		onGPU(pass.Info{
			Name: "share-tables", Needs: []string{loadsEarly},
			Doc: "copy a table that weights are looked up in to shared memory, while weights are on their way",
			Why: "lanes that look up entries of their own read lines of the first level of cache one after the other",
		}, shareTables),
		onCPU(pass.Info{
			Name: "widen-bytes",
			Doc:  "compute with bytes of words in the words where a CPU converts them to floats",
			Why:  "a vector of words that is narrowed to bytes and widened again takes five instructions of one port",
		}, widenBytes),
		onCPU(pass.Info{
			Name: "take-turns",
			Doc:  "let the sums of a CPU's loop take turns: an operation of each, then the next of each",
			Why:  "what sums share, weights or activations, is then needed for a few instructions and not for the whole body",
		}, takeTurns),
		onCPU(pass.Info{
			Name: "join-lanes",
			Doc:  "compute narrow values that are computed alike in the lanes of one register",
			Why:  "points of a cache that are visited together have a maximum and an exponential each, of one or two lanes",
		}, joinLanes),
		{Info: pass.Info{
			Name: "expand-math", From: pass.Program, To: pass.Program, Required: true,
			Doc: "write functions and arithmetic of narrow floats that the target lacks in basic instructions",
			Why: "heuristics price them as one operation; renderers print what is there",
		}, Run: func(_ context.Context, s *State) error {
			s.Program = Expand(s.Program, s.Target)
			return nil
		}},
		onCPU(pass.Info{
			Name: "spread-prefetches",
			Doc:  "let the prefetches of a CPU's loop come at even distances in its body",
			Why:  "a core keeps few lines on their way: of many that are asked for at once, the later ones and all loads wait",
		}, alone(spreadPrefetches)),
	},
	Orders: []pass.Order{
		{Before: "eliminate-common-subexpressions", After: "eliminate-barriers", Because: "a fill that is shared leaves a barrier that orders nothing"},
		{Before: "gather-fills", After: "eliminate-barriers", Because: "fills side by side leave barriers that order nothing"},
		{Before: "eliminate-barriers", After: "double-buffer", Because: "a loop has two barriers only when those that order nothing are gone"},
		{Before: "double-buffer", After: "prefetch-tiles", Because: "a loop with two sets of tiles issues its loads already"},
		{Before: "set-cache-policies", After: "rotate-loops", Because: "the copies of a load keep its policy"},
		{Before: "set-cache-policies", After: "join-loads", Because: "parts of 16 bytes that are loaded together still share their lines with those of others"},
		{Before: "join-loads", After: "rotate-loops", Because: "joined loads of the next iteration take fewer registers"},
		{Before: "guard-loads", After: "rotate-loops", Because: "what a row is replaced with is loaded after it, in its own iteration"},
		{Before: "rematerialise-reads", After: "rotate-loops", Because: "it makes the registers that weights of the next rows take"},
		{Before: "order-products", After: "exchange-units", Because: "an exchange stands where the first of its copies is read"},
		{Before: "order-products", After: "rotate-loops", Because: "what it frees holds the weights of the next rows"},
		{Before: "order-rows", After: "hoist-early-loads", Because: "the order of rows decides which weights find registers"},
		{Before: "rotate-loops", After: "hoist-early-loads", Because: "the loads of the first iteration are hoisted with the others"},
		{Before: "hoist-early-loads", After: "sink-conversions", Because: "only what was loaded before the wait is late"},
		{Before: "widen-bytes", After: "take-turns", Because: "operations take turns as they are in the end"},
		{Before: "take-turns", After: "join-lanes", Because: "a joined operation belongs to several sums, which could take no turns"},
		{Before: "take-turns", After: "spread-prefetches", Because: "it leaves prefetches at the head of a body"},
		{Before: "hoist-early-loads", After: "advance-loads", Because: "weights have the registers first"},
		{Before: "advance-loads", After: "share-tables", Because: "its barrier is none of those that activations are loaded in front of"},
	},
})
