package layer

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// Recurrent is layers of recurrent cells over whole sequences, in one direction or in both
// (Schuster and Paliwal 1997).
type Recurrent struct {
	Cells   [][]Cell // by layer and direction: forward, backward
	Hidden  int
	Dropout *Dropout // between layers; nil: none
}

// RecurrentOptions describes NewRecurrent.
type RecurrentOptions struct {
	Cell          func(p *nn.Parameters, in, hidden int) Cell // NewCell of NewRNN, NewGRU or NewLSTM
	In, Hidden    int
	Layers        int // 0 means 1
	Bidirectional bool
	Dropout       float64 // between layers
}

// NewCell makes the constructor of a cell one of RecurrentOptions: NewCell(NewLSTM).
func NewCell[C Cell](make func(p *nn.Parameters, in, hidden int) C) func(p *nn.Parameters, in, hidden int) Cell {
	return func(p *nn.Parameters, in, hidden int) Cell { return make(p, in, hidden) }
}

// NewRecurrent registers the cells in scopes "0.forward", "0.backward", "1.forward" ..
func NewRecurrent(p *nn.Parameters, opt RecurrentOptions) *Recurrent {
	l := &Recurrent{Hidden: opt.Hidden}
	directions := []string{"forward"}
	if opt.Bidirectional {
		directions = append(directions, "backward")
	}
	in := opt.In
	if opt.Cell == nil {
		p.Graph().Fail("recurrent", "no cell; want one: NewCell(NewLSTM), say")
		opt.Cell = NewCell(NewRNN)
	}
	for n := range max(opt.Layers, 1) {
		l.Cells = append(l.Cells, lists.Map(directions, func(name string) Cell {
			return opt.Cell(p.In(fmt.Sprint(n)).In(name), in, opt.Hidden)
		}))
		in = len(directions) * opt.Hidden
	}
	if opt.Dropout > 0 {
		l.Dropout = NewDropout(p, opt.Dropout)
	}
	return l
}

// Forward maps xs [B, T, in] to the last layer's states of all steps [B, T, hidden], of both
// directions one after the other, and gives the last states of each cell (the first step's
// where it goes backward), by layer and direction. start has states to begin with in the same
// order; nil means zeros.
func (l *Recurrent) Forward(xs *tensor.Tensor, start [][]*tensor.Tensor) (all *tensor.Tensor, last [][]*tensor.Tensor) {
	g := xs.Graph()
	if xs.Rank() != 3 || xs.Extent(1) < 1 {
		return g.Fail("recurrent", "%s, want [B, T, in] with a step at least", xs), nil
	}
	all = xs
	for n, cells := range l.Cells {
		if n > 0 && l.Dropout != nil {
			all = l.Dropout.Forward(all)
		}
		var directions []*tensor.Tensor
		for k, cell := range cells {
			var states []*tensor.Tensor
			if at := len(last); at < len(start) {
				states = start[at]
			} else {
				zeros := g.Zeros(ir.F32, xs.Extent(0), l.Hidden)
				states = slices.Repeat([]*tensor.Tensor{zeros}, cell.States())
			}
			own, end := sweep(cell, all, states, k == 1)
			directions, last = append(directions, own), append(last, end)
		}
		all = directions[0].Cat(-1, directions[1:]...)
	}
	return all, last
}

// sweep runs a cell along the time axis; backward it begins at the end.
func sweep(cell Cell, xs *tensor.Tensor, states []*tensor.Tensor, backward bool) (all *tensor.Tensor, end []*tensor.Tensor) {
	steps := lists.Upto(xs.Extent(1))
	outputs := make([]*tensor.Tensor, len(steps))
	if backward {
		slices.Reverse(steps)
	}
	for _, t := range steps {
		states = cell.Step(xs.SliceInts(1, t, 1).Squeeze(1), states)
		outputs[t] = states[0].Unsqueeze(1)
	}
	return outputs[0].Cat(1, outputs[1:]...), states
}
