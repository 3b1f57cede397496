package kernel_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tgc/runtime/hcq/port"
	"tgc/runtime/hcq/tegra/kernel"
)

var _ port.Port = kernel.Port{}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Memory of a descriptor is seen through a mapping, and a doorbell is a store to it.
func TestMapping(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory")
	check(t, os.WriteFile(path, make([]byte, 4096), 0o600))
	var p kernel.Port
	fd, err := p.Open(path)
	check(t, err)
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v: children inherit the descriptor", flags, err)
	}
	m, err := p.Mmap(fd, 4096)
	check(t, err)
	p.Doorbell(m, 0x90, 0x1ff)
	p.Publish()
	stored, err := os.ReadFile(path)
	check(t, err)
	if got := binary.NativeEndian.Uint32(stored[0x90:]); got != 0x1ff {
		t.Errorf("%#x", got)
	}
	check(t, p.Munmap(m))
	check(t, p.Close(fd))
	if err := p.Close(fd); !errors.Is(err, unix.EBADF) {
		t.Errorf("closed twice: %v", err)
	}
}

// A request reaches memory that its argument points to, and leaves no address behind.
func TestPointer(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(fd)
	const interfaces = 0x8912 // SIOCGIFCONF: a length, and a pointer at 8
	argument, list := make([]byte, 16), make([]byte, 40*64)
	binary.NativeEndian.PutUint32(argument, uint32(len(list)))
	var p kernel.Port
	if err := p.Ioctl(fd, interfaces, argument, list, 8); err != nil {
		t.Skip(err)
	}
	if n := binary.NativeEndian.Uint32(argument); n == 0 || n > uint32(len(list)) || !bytes.Contains(list, []byte("lo")) {
		t.Errorf("%d bytes of interfaces", n)
	}
	if binary.NativeEndian.Uint64(argument[8:]) != 0 {
		t.Error("the address stays in the argument")
	}
	for _, bad := range []func() error{
		func() error { return p.Ioctl(fd, interfaces, argument, list, 9) },
		func() error { return p.Ioctl(fd, interfaces, argument, nil, 8) },
		func() error { return p.Ioctl(fd, interfaces, nil, nil, -1) },
	} {
		if err := bad(); err != syscall.EINVAL {
			t.Errorf("%v, want EINVAL", err)
		}
	}
}

// A child has neither a descriptor that was opened nor one that a request returned in its
// argument: as TSG_OPEN returns one, FIONREAD returns the number of bytes in a pipe.
func TestChildren(t *testing.T) {
	var p kernel.Port
	opened, err := p.Open(os.Args[0])
	if errors.Is(err, syscall.ETXTBSY) || errors.Is(err, syscall.EACCES) {
		opened, err = p.Open("/dev/null")
	}
	check(t, err)
	defer p.Close(opened)
	plain, err := unix.Dup(opened) // what a kernel driver may return: children inherit it
	check(t, err)
	defer p.Close(plain)
	returned, err := unix.Dup(opened)
	check(t, err)
	defer p.Close(returned)
	var pipe [2]int
	check(t, unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	defer p.Close(pipe[0])
	defer p.Close(pipe[1])
	_, err = unix.Write(pipe[1], make([]byte, returned))
	check(t, err)
	const bytesInPipe = 0x541b // FIONREAD
	defer kernel.ReturnsDescriptor(bytesInPipe, 0)()
	argument := make([]byte, 4)
	check(t, p.Ioctl(pipe[0], bytesInPipe, argument, nil, -1))
	if got := int(binary.NativeEndian.Uint32(argument)); got != returned {
		t.Fatalf("%d bytes, want %d", got, returned)
	}
	inherited := func(fd int) bool {
		path := fmt.Sprintf("/proc/self/fd/%d", fd)
		return exec.Command("/bin/sh", "-c", "test -e "+path).Run() == nil
	}
	if !inherited(plain) {
		t.Skip("children cannot be looked at here") // exec.Command closes nothing that is not marked
	}
	if inherited(opened) || inherited(returned) {
		t.Error("a child has a descriptor of the device")
	}
}

// Errors are errno values, as a trace names them.
func TestErrors(t *testing.T) {
	var p kernel.Port
	if _, err := p.Open("/no/such/node"); err != syscall.ENOENT {
		t.Errorf("%v", err)
	}
	fd, err := p.Open("/dev/null")
	check(t, err)
	defer p.Close(fd)
	if err := p.Ioctl(fd, 0xc0084e00, make([]byte, 8), nil, -1); err != syscall.ENOTTY {
		t.Errorf("%v", err)
	}
	if err := p.IoctlValue(fd, 0x4e04, 1); err != syscall.ENOTTY {
		t.Errorf("%v", err)
	}
	if _, err := p.Mmap(fd, 4096); err == nil {
		t.Error("/dev/null was mapped")
	}
	defer func() {
		if recover() == nil {
			t.Error("a doorbell outside of its mapping")
		}
	}()
	p.Doorbell(make([]byte, 4), 4, 1)
}
