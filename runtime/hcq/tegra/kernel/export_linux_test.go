package kernel

// ReturnsDescriptor adds a request that returns a descriptor at a place in its argument,
// until the function that it returns is called.
func ReturnsDescriptor(number uint32, at int) (undo func()) {
	descriptors[number] = at
	return func() { delete(descriptors, number) }
}
