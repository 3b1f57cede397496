package devices_test

import (
	"context"
	"errors"
	"fmt"

	"tgc/runtime/devices"
)

// A device is opened by its name; without one it is the best that is there.
func ExampleOpen() {
	ctx := context.Background()
	dev, _, err := devices.Open(ctx, "interp")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	_, _, err = devices.Open(ctx, "abacus")
	fmt.Println(dev.Name(), errors.Is(err, devices.ErrUnknown))
	// Output: interp true
}

// The default device is opened once, for the whole program.
func ExampleDefault() {
	first, err := devices.Default()
	second, _ := devices.Default()
	fmt.Println(first == second, err)
	// Output: true <nil>
}
