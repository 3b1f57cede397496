package kernel

// barrier orders all memory accesses before it ahead of all after it, for devices too.
func barrier()
