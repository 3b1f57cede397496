package plan

// Limits on one axis, so that a plan from a database cannot explode.
const (
	MaxLanes  = 256
	MaxUnroll = 1024

	WarpSize   = 32
	MaxThreads = 1024 // of a block
)

// LanesApart is how far apart the elements of neighbouring lanes of a CPU may be to be picked out of all that lies
// between, which is loaded: further ones are loaded one by one. One Zen 4 core, sums of a million rows of 3, 4, 5, 7 and 8
// floats, lanes of rows, us: loaded one by one 1171 to 2500, 3154, 3687, 7043, 8069, picked 298 to 366, 542, 1049, 3367, 2574.
const LanesApart = 4
