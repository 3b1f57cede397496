// Package rarecollection has a test binary collect garbage when its heap has grown
// fivefold instead of twofold. Tests compile thousands of small graphs, whose memory
// is garbage at once: the collector took a third of the time of such packages, and its
// idle workers the other core. Test packages import it for its effect; GOGC decides
// where it is set.
package rarecollection

import (
	"os"
	"runtime/debug"
)

// Percent is what the heap may grow by before a collection.
const Percent = 400

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(Percent)
	}
}
