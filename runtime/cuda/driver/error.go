package driver

import (
	"errors"
	"fmt"
)

// Code is a result of the driver: CUresult.
type Code int32

// The codes that somebody asks for.
const (
	InvalidValue      Code = 1
	OutOfMemory       Code = 2
	NoDevice          Code = 100
	InvalidDevice     Code = 101
	InvalidContext    Code = 201
	NoBinaryForGPU    Code = 209
	Uncorrectable     Code = 214 // ECC
	InvalidPTX        Code = 218
	UnsupportedPTX    Code = 222
	InvalidHandle     Code = 400
	NotFound          Code = 500
	IllegalAddress    Code = 700
	LaunchTimeout     Code = 702
	DeviceAssert      Code = 710
	StackError        Code = 714
	IllegalInstr      Code = 715
	MisalignedAddress Code = 716
	InvalidSpace      Code = 717
	InvalidPC         Code = 718
	LaunchFailed      Code = 719
)

// sticky are the codes after which a context does nothing more.
var sticky = map[Code]bool{
	Uncorrectable: true, IllegalAddress: true, LaunchTimeout: true, DeviceAssert: true, StackError: true,
	IllegalInstr: true, MisalignedAddress: true, InvalidSpace: true, InvalidPC: true, LaunchFailed: true,
}

// Error is a call that the driver refused.
type Error struct {
	Call string // the symbol called
	Code Code
	Name string // of the code, CUDA_ERROR_OUT_OF_MEMORY say
	Text string // the driver's own words
	// Kernel is the entry at fault, where the driver knows it: an emulator does.
	Kernel string
}

func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: error %d", e.Call, e.Code)
	}
	return fmt.Sprintf("%s: %s (%d): %s", e.Call, e.Name, e.Code, e.Text)
}

// Is makes errors.Is match a Code's error whatever the call was.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Call == "" && other.Code == e.Code
}

// Sticky reports whether an error ends its context: a fault of a kernel.
func Sticky(err error) bool {
	var e *Error
	return errors.As(err, &e) && sticky[e.Code]
}

// CodeOf is the driver's code in an error, 0 where there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}
