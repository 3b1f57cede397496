package driver

// Launch queues a kernel.
func (l *Library) Launch(k *Kernel, stream Stream) error {
	s, err := l.pool.get(paramRoom(k))
	if err != nil {
		return err
	}
	defer l.pool.put(s)
	return l.call(fnLaunchKernel, uintptr(k.Func),
		uintptr(k.Grid[0]), uintptr(k.Grid[1]), uintptr(k.Grid[2]),
		uintptr(k.Block[0]), uintptr(k.Block[1]), uintptr(k.Block[2]),
		uintptr(k.Shared), uintptr(stream), kernelParams(s, k).addr(), 0)
}

func paramRoom(k *Kernel) int { return 16*len(k.Params) + 256 }

// kernelParams is an array of addresses of the values: the driver copies each
// value by the size that the kernel declares.
func kernelParams(s *scratch, k *Kernel) slot {
	values, addresses := words(s, k.Params), s.bytes(8*len(k.Params))
	for i := range k.Params {
		addresses.putAddr(8*i, values[8*i:])
	}
	return addresses
}

// Offsets in CUDA_KERNEL_NODE_PARAMS_v2. The first version ends before
// kern. The function is named either by func or by kern.
const (
	nodeFunc         = 0  // CUfunction func
	nodeGrid         = 8  // unsigned gridDimX, gridDimY, gridDimZ
	nodeBlock        = 20 // unsigned blockDimX, blockDimY, blockDimZ
	nodeShared       = 32 // unsigned sharedMemBytes
	nodeKernelParams = 40 // void **kernelParams
	nodeExtra        = 48 // void **extra
	nodeKern         = 56 // CUkernel kern
	nodeContext      = 64 // CUcontext ctx
	nodeParamsBytes  = 72
)

func nodeParams(s *scratch, k *Kernel) slot {
	b := s.bytes(nodeParamsBytes)
	b.put64(nodeFunc, uint64(k.Func))
	for axis := range 3 {
		b.put32(nodeGrid+4*axis, k.Grid[axis])
		b.put32(nodeBlock+4*axis, k.Block[axis])
	}
	b.put32(nodeShared, k.Shared)
	b.putAddr(nodeKernelParams, kernelParams(s, k))
	b.put64(nodeExtra, 0)
	b.put64(nodeKern, 0)
	b.put64(nodeContext, 0) // the current one
	return b
}
