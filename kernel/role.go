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
)

var roleNames = [...]string{"none", "grid", "serial", "unroll", "lane"}

func (r role) String() string { return roleNames[r] }
