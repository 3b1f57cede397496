package plan

import "slices"

// Role is how the points of a range run.
type Role uint8

// The roles.
const (
	NoRole  Role = iota
	Grid         // a coordinate of the flat work unit
	Serial       // an iteration of a loop
	Unroll       // a copy of the code
	Lane         // a lane of vectors
	Matrix       // summed by the lanes of a warp together, in a matrix instruction
	Tiled        // summed by a CPU's tile instructions
	Local        // a thread of a block: points of a store or a stage
	Group        // a thread of a block: a part of a reduce
	Warp         // a thread of a warp: a part of a reduce
	Cluster      // a block of a cluster: a part of a reduce
)

// IsThread reports a sub-axis of the thread's index.
func (r Role) IsThread() bool { return r >= Local && r <= Warp }

var roleNames = [...]string{"none", "grid", "serial", "unroll", "lane", "matrix", "tiled", "local", "group", "warp", "cluster"}

func (r Role) String() string { return roleNames[r] }

// ParseRole is the inverse of String.
func ParseRole(name string) (Role, bool) {
	i := slices.Index(roleNames[:], name)
	return Role(max(i, 0)), i > 0
}
