// Package port says what the runtime of a Jetson's GPU asks of an operating system: the
// real one (tegra/kernel), an emulated one (emu, which has the methods without knowing this),
// or a recorder in between (trace).
package port

// Port is an operating system. All errors are errno values.
type Port interface {
	Open(path string) (fd int, err error)
	Close(fd int) error
	// Ioctl makes a request with an argument in memory, which it may change. Where
	// pointer is not negative, the argument has there the address of pointee, which it
	// may change too.
	Ioctl(fd int, number uint32, argument, pointee []byte, pointer int) error
	// IoctlValue makes a request whose argument is a value.
	IoctlValue(fd int, number uint32, value uint64) error
	Mmap(fd, bytes int) ([]byte, error)
	Munmap(mapping []byte) error
	// Publish is a full barrier of the system.
	Publish()
	// Doorbell stores a word in a mapping of the doorbell.
	Doorbell(mapping []byte, offset int, value uint32)
}
