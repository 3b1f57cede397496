package lower

import "fmt"

// lowerError carries an error out of the recursion of lowering to Lower.
type lowerError struct{ err error }

func fail(format string, args ...any) {
	panic(lowerError{fmt.Errorf("kernel: "+format, args...)})
}
