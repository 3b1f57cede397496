package kernel

// role is how the points of a range run.
type role uint8

// The roles.
const (
	roleNone   role = iota
	roleGrid        // a coordinate of the flat work unit
	roleSerial      // an iteration of a loop
	roleUnroll      // a copy of the code
	roleLane        // a lane of vectors
	roleMatrix      // summed by the lanes of a warp together, in a matrix instruction
	roleLocal       // a thread of a block: points of a store or a stage
	roleGroup       // a thread of a block: a part of a reduce
	roleWarp        // a thread of a warp: a part of a reduce
)

// isThread reports a digit of the thread's index.
func (r role) isThread() bool { return r >= roleLocal }

var roleNames = [...]string{"none", "grid", "serial", "unroll", "lane", "matrix", "local", "group", "warp"}

func (r role) String() string { return roleNames[r] }
