package plan

// Limits on one axis, so that a plan from a database cannot explode.
const (
	MaxLanes  = 256
	MaxUnroll = 1024

	WarpSize   = 32
	MaxThreads = 1024 // of a block
)
