package schedule

import (
	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// What callers of Run name; package state documents them.
type (
	Options  = state.Options
	Profile  = state.Profile
	Decoder  = state.Decoder
	Rule     = state.Rule
	RuleSet  = state.RuleSet
	Schedule = state.Schedule
	Buffer   = state.Buffer
	Launch   = state.Launch
	Kernel   = state.Kernel
	Record   = state.Record
	Number   = state.Number

	Decision  = state.Decision
	Decisions = state.Decisions
	Choice    = state.Choice
)

// The choices that every rule has that takes decisions.
const (
	Apply   = state.Apply
	Decline = state.Decline
)

// Par is the rule that puts kernels of one dependence level into one launch; a
// device merges what a launch holds only if it is on.
var Par = state.OrderLevels

// DefaultOptions is the setting of the worked examples, see state.
func DefaultOptions() Options { return state.DefaultOptions() }

// CPUOptions is the setting for CPUs, see state.
func CPUOptions() Options { return state.CPUOptions() }

// KernelText prints a kernel (or any expression) in a compact infix form.
func KernelText(root *ir.UOp) string { return expr.KernelText(root) }

// Restore reads what Schedule.Store wrote. The nodes are made in an arena.
var Restore = state.Restore
