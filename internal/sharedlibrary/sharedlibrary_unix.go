//go:build unix

package sharedlibrary

import "github.com/ebitengine/purego"

// Open loads a library: a path, or a name that the dynamic linker knows.
func Open(name string, scope Scope) (handle uintptr, err error) {
	mode := purego.RTLD_NOW | purego.RTLD_LOCAL
	if scope == Global {
		mode = purego.RTLD_NOW | purego.RTLD_GLOBAL
	}
	return purego.Dlopen(name, mode)
}

// Find is the address of a function of a library.
func Find(handle uintptr, symbol string) (uintptr, error) { return purego.Dlsym(handle, symbol) }

// FindLoaded is the address of a function of what the program has loaded.
func FindLoaded(symbol string) (uintptr, error) { return purego.Dlsym(purego.RTLD_DEFAULT, symbol) }
