package emu

import "encoding/binary"

// replay is what a trace has chosen where a machine would choose for itself.
type replay struct {
	file            int    // descriptor of the next node
	result          []byte // of the next request
	given           func(offset int) bool
	characteristics []byte
}

// NewReplay makes a machine of so many bytes of memory that takes descriptors, handles, subcontexts, tokens and
// characteristics from a trace and computes all else. It runs no kernels; what their
// descriptors release is released.
func NewReplay(memory int64) *Machine {
	m := New(Options{MemoryBytes: memory})
	m.replay = &replay{}
	return m
}

// ExpectFile says which descriptor the next Open returned.
func (m *Machine) ExpectFile(fd int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replay.file = fd
}

// ExpectResult says what the next request gave back, and which bytes of it are given.
func (m *Machine) ExpectResult(result []byte, given func(offset int) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replay.result, m.replay.given = result, given
}

// ExpectCharacteristics says what the GPU's characteristics were. What is missing of
// them is an Orin's.
func (m *Machine) ExpectCharacteristics(b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	whole := m.characteristics()
	copy(whole, b)
	m.replay.characteristics = whole
}

// choose is a number that goes into a result at an offset: the trace's, where that says.
func (m *Machine) choose(offset int, proposed uint32) uint32 {
	if m.replay == nil || offset+4 > len(m.replay.result) {
		return proposed
	}
	for i := range 4 {
		if !m.replay.given(offset + i) {
			return proposed
		}
	}
	return binary.LittleEndian.Uint32(m.replay.result[offset:])
}

// PointeeBytes is the size of what a request's argument points to; 0 for nothing.
func PointeeBytes(number uint32, argument []byte) int {
	const most = 1 << 16
	size := uint64(0)
	switch {
	case number == 0xc0104705 && len(argument) >= 8:
		size = get64(argument, 0)
	case number == 0xc0185411 && len(argument) >= 24:
		size = get64(argument, 16)
	}
	return int(min(size, most))
}

// IsCharacteristics tells the request for the GPU's characteristics.
func IsCharacteristics(number uint32) bool { return number == 0xc0104705 }
