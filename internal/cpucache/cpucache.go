// Package cpucache asks the system how large a core's caches are. Plans are chosen by these
// sizes: how many rows of decoded weights stay near, and when activations push each other out.
package cpucache

// Sizes are the bytes of data that one core holds in its first, second and third cache; 0 is unknown.
type Sizes struct {
	L1, L2, L3 int
}

// OfCore reads the sizes of the machine's first core. A cache of several cores counts with a
// core's share, as all of them compute.
func OfCore() Sizes { return ofCore() }
