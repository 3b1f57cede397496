// Command cliffs looks for kernels that cannot be fast, without a device. It compiles
// the decode step of a model's one layer and head, or a prompt's step, for many shapes, types of weights,
// modes, batches, lengths and targets, and checks every kernel that reads weightBytes of weights
// or more, those of prompts for spills alone:
//
//   - no-plan: it has a plan, and one of a heuristic that knows its kind.
//   - price: what its plan is expected to cost is at most mostOver times its roofline.
//     The price is the heuristic's, where the plan was chosen by one, else the price of
//     the lowered program: its bytes at the rate that its threads' loads let through,
//     or its instructions at the rate of those threads. The roofline is the start of a
//     kernel and one load's latency, then its bytes at the whole bandwidth, or the
//     instructions of the program at the device's whole rate, whichever is longer.
//   - narrow: the grid fills the machine. A multiprocessor has fullWarps schedulers, and
//     each needs a warp: a grid has fewer threads than all of them need, or fewer
//     blocks than fullShare of the multiprocessors.
//   - alone: no thread sums a long row alone: one of more than alonePoints points that no
//     other thread shares, or one whose iterations, one after the other, take longer than
//     the roofline.
//   - bytes: at most mostNarrow of the loads of weights are narrower than wideLoad bytes,
//     scales included. What a thread needs of a row lies in one piece (packed.Planes).
//   - in-turn: no thread loads activations one after the other: no loop of more than
//     mostInTurn iterations loads inTurnBytes or less, and waits for memory in each.
//   - spill: where ptxas is installed, the machine code spills at most mostSpilled bytes. Assembled is what holds crowded times as
//     many words at once, by its text, as its threads have registers.
//
// Weights are found from the step, not by name: buffers of the user that no kernel of the
// step writes.
//
//	go run ./internal/cliffs                     # everything: an hour or two
//	go run ./internal/cliffs -only 'qwen2.5-.*/Q5_K/int8/b1/ptx:sm_90'
//	go run ./internal/cliffs -n 300 -seed 7      # a sample
//
// Its test checks a fixed sample against testdata/known.txt: a finding that the file lacks
// fails, and so does a line of the file that no longer holds. -update writes it.
package main
