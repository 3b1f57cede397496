package plan

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// Version changes when Opts come, leave or are written in another way: a stored plan means
// nothing to another version.
func Version() string {
	sum := sha256.New()
	for _, kind := range OptKinds() {
		row := kind.Info()
		fmt.Fprintf(sum, "%s %d %d %d %s\n", row.Name, row.Axis, row.Amount, row.role, strings.Join(kind.Words(), ","))
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:6])
}
