package devices

import "golang.org/x/sys/unix"

// processorName is what the operating system calls the CPU; empty where it has no name.
func processorName() string {
	name, err := unix.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return ""
	}
	return name
}
