//go:build !linux && !darwin

package devices

import "os"

// processorName is what the operating system calls the CPU; empty where it has no name.
func processorName() string { return os.Getenv("PROCESSOR_IDENTIFIER") }
