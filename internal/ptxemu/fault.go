package ptxemu

import "fmt"

// Fault is a mistake of a kernel: where it happened, and Err says what.
type Fault struct {
	Kernel string
	Block  [3]int
	Thread int // flat index in the block
	Line   int // of the PTX
	Text   string
	Err    error
}

func (f *Fault) Error() string {
	if f.Text == "" { // of the whole grid
		return fmt.Sprintf("ptx: kernel %s: %v", f.Kernel, f.Err)
	}
	return fmt.Sprintf("ptx: kernel %s: block %v, thread %d: line %d: `%s`: %v", f.Kernel, f.Block, f.Thread, f.Line, f.Text, f.Err)
}

func (f *Fault) Unwrap() error { return f.Err }

// AddressError is an access that a GPU's memory unit refuses too.
type AddressError struct {
	Address uint64
	Kind    AddressKind
	text    string
}

// AddressKind is what is wrong with an address.
type AddressKind int

// Kinds of wrong addresses.
const (
	Outside    AddressKind = iota // of every allocation
	Misaligned                    // no multiple of the access's width
	InWindow                      // of global memory, in a window of another space
	ReadOnly                      // a store to what may only be read
)

func (e *AddressError) Error() string { return e.text }
