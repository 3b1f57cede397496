package pages

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

var protections = [...]uint32{
	None:        windows.PAGE_NOACCESS,
	Read:        windows.PAGE_READONLY,
	ReadWrite:   windows.PAGE_READWRITE,
	ReadExecute: windows.PAGE_EXECUTE_READ,
}

// views are the addresses of mapped files, which are given back by another call than
// memory is.
var views sync.Map

// Reserve returns memory that may not be touched until it is protected otherwise.
func Reserve(bytes int) ([]byte, error) {
	address, err := windows.VirtualAlloc(0, uintptr(bytes), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_NOACCESS)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", bytes, err)
	}
	return at(address, bytes), nil
}

// Protect changes what may be done with whole pages of a mapping.
func Protect(memory []byte, to Protection) error {
	var before uint32
	return windows.VirtualProtect(addressOf(memory), uintptr(len(memory)), protections[to], &before)
}

// Unmap gives back what Reserve, Map or MapFile has returned, all of it.
func Unmap(memory []byte) error {
	address := addressOf(memory)
	if _, isView := views.LoadAndDelete(address); isView {
		return windows.UnmapViewOfFile(address)
	}
	return windows.VirtualFree(address, 0, windows.MEM_RELEASE)
}

// MapFile maps the first bytes of a file for reading.
func MapFile(file *os.File, bytes int) ([]byte, error) {
	size := uint64(bytes)
	section, err := windows.CreateFileMapping(windows.Handle(file.Fd()), nil, windows.PAGE_READONLY, uint32(size>>32), uint32(size), nil)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(section) // the view keeps what it needs
	address, err := windows.MapViewOfFile(section, windows.FILE_MAP_READ, 0, 0, uintptr(bytes))
	if err != nil {
		return nil, err
	}
	views.Store(address, true)
	return at(address, bytes), nil
}

// at is memory of the system, which the collector neither owns nor moves.
func at(address uintptr, bytes int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), bytes)
}

func addressOf(memory []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(memory))) }
