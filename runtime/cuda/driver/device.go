package driver

// DeviceCount is the number of GPUs that the process may use.
func (l *Library) DeviceCount() (int, error) { return l.outInt(fnDeviceGetCount) }

// DeviceAt is the GPU of an index.
func (l *Library) DeviceAt(index int) (Device, error) {
	d, err := l.outInt(fnDeviceGet, uintptr(index))
	return Device(d), err
}

// nameBytes is room for a GPU's name; the longest today have some 40 bytes.
const nameBytes = 256

// DeviceName is what the vendor calls a GPU.
func (l *Library) DeviceName(d Device) (string, error) {
	s, err := l.pool.get(nameBytes)
	if err != nil {
		return "", err
	}
	defer l.pool.put(s)
	name := s.bytes(nameBytes)
	if err := l.call(fnDeviceGetName, name.addr(), nameBytes, uintptr(d)); err != nil {
		return "", err
	}
	return untilZero(name), nil
}

// DeviceAttribute is a property of a GPU.
func (l *Library) DeviceAttribute(d Device, a Attribute) (int, error) {
	return l.outInt(fnDeviceGetAttribute, uintptr(a), uintptr(d))
}

// DeviceMemory is the size of a GPU's memory in bytes.
func (l *Library) DeviceMemory(d Device) (uint64, error) {
	return l.out(fnDeviceTotalMem, uintptr(d))
}

// contextFlags is CU_CTX_SCHED_SPIN: a step takes some hundred microseconds, and
// a thread that sleeps until the interrupt adds tens to each.
const contextFlags = 1

// ContextCreate makes a context on a GPU and makes it current. It is no primary
// context: a fault ends a context, and an own one can be dropped and remade.
func (l *Library) ContextCreate(d Device) (Context, error) {
	c, err := l.out(fnCtxCreate, contextFlags, uintptr(d))
	return Context(c), err
}

// ContextDestroy ends a context with everything in it.
func (l *Library) ContextDestroy(c Context) error { return l.call(fnCtxDestroy, uintptr(c)) }

// ContextSet makes a context current on the calling thread; 0 is none.
func (l *Library) ContextSet(c Context) error { return l.call(fnCtxSetCurrent, uintptr(c)) }
