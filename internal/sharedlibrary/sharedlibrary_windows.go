package sharedlibrary

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// Open loads a library: a path, or a name that is looked for where Windows looks.
func Open(name string, _ Scope) (handle uintptr, err error) {
	library, err := windows.LoadLibrary(name)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return uintptr(library), nil
}

// Find is the address of a function of a library.
func Find(handle uintptr, symbol string) (uintptr, error) {
	address, err := windows.GetProcAddress(windows.Handle(handle), symbol)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", symbol, err)
	}
	return address, nil
}

// FindLoaded is the address of a function of what the program has loaded; on Windows
// libraries are always asked one by one.
func FindLoaded(symbol string) (uintptr, error) { return 0, fmt.Errorf("%s: %w", symbol, ErrNotFound) }
