package program

// Asynchronous copies (cp.async) bring bytes from global to shared memory without registers, while the thread that
// started them goes on. They are done when the thread has waited for them, and other threads see them behind a
// barrier after that wait. Until then nothing may read or write the bytes that they write.

// CopySM is the first architecture that has such copies.
const CopySM = 80

// CopySizes are how many bytes one can have, the most first. Both of its addresses are multiples of them.
var CopySizes = [...]int64{16, 8, 4}

func checkCopyAsync(v *verifier, in *Instr) {
	to, from := in.Args[0], in.Args[1]
	for _, a := range in.Args {
		v.wantPointer(a)
	}
	if to.Type.Space != SharedSpace {
		v.fail("a copy to %s, want a shared pointer", to.Type)
	}
	if from.Type.Space != GlobalSpace {
		v.fail("a copy from %s, want a global pointer", from.Type)
	}
	if n := in.Int; n != 4 && n != 8 && n != 16 || n%int64(max(from.Type.Elem.Size(), 1)) != 0 {
		v.fail("a copy of %d bytes of %s, want whole elements of 4, 8 or 16 bytes", n, from.Type.Elem)
	}
	if v.err != nil {
		return
	}
	t := Vector(from.Type.Elem, in.copied())
	v.access(from, t, false)
	v.access(to, t, true)
}

// copied is how many elements a CopyAsync copies.
func (in *Instr) copied() int { return int(in.Int) / in.Args[1].Type.Elem.Size() }

// CopyAsync starts a copy of 4, 8 or 16 bytes to shared memory from global memory, which WaitCopies ends.
func (b *Builder) CopyAsync(to, from *Value, bytes int64) {
	b.Emit(Instr{Op: CopyAsync, Args: []*Value{to, from}, Int: bytes})
}

// WaitCopies waits for the copies that this thread has started.
func (b *Builder) WaitCopies() { b.Emit(Instr{Op: WaitCopies}) }
