//go:build !(linux && amd64)

package cpu

import "errors"

// askForTiles has nobody to ask.
func askForTiles() error { return errors.ErrUnsupported }
