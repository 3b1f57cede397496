package driver

// function is an index into the table of driver functions.
type function int

// The functions of libcuda in use.
const (
	fnInit function = iota
	fnDriverGetVersion
	fnGetErrorName
	fnGetErrorString
	fnDeviceGetCount
	fnDeviceGet
	fnDeviceGetName
	fnDeviceGetAttribute
	fnDeviceTotalMem
	fnCtxCreate
	fnCtxDestroy
	fnCtxSetCurrent
	fnMemGetInfo
	fnMemAlloc
	fnMemFree
	fnMemHostAlloc
	fnMemFreeHost
	fnMemcpyHtoDAsync
	fnMemcpyDtoHAsync
	fnMemsetD8Async
	fnStreamCreate
	fnStreamSynchronize
	fnStreamDestroy
	fnEventCreate
	fnEventRecord
	fnEventElapsedTime
	fnEventDestroy
	fnLinkCreate
	fnLinkAddData
	fnLinkComplete
	fnLinkDestroy
	fnModuleLoadDataEx
	fnModuleUnload
	fnModuleGetFunction
	fnFuncGetAttribute
	fnFuncSetAttribute
	fnLaunchKernel
	fnGraphCreate
	fnGraphDestroy
	fnGraphAddKernelNode
	fnGraphAddEmptyNode
	fnGraphAddEventRecordNode
	fnGraphAddDependencies
	fnGraphAddDependenciesData
	fnGraphInstantiate
	fnGraphUpload
	fnGraphLaunch
	fnGraphExecKernelNodeSetParams
	fnGraphExecDestroy
	functionCount
)

// functionRow names a function: its symbols in the order to try them, all of
// one signature. The library keeps the symbols of older versions, so a suffix
// names a signature, not a release; the header's plain name may be a macro for
// any of them.
type functionRow struct {
	symbols  []string
	optional bool
}

var functions = [functionCount]functionRow{
	fnInit:               {symbols: []string{"cuInit"}},
	fnDriverGetVersion:   {symbols: []string{"cuDriverGetVersion"}},
	fnGetErrorName:       {symbols: []string{"cuGetErrorName"}},
	fnGetErrorString:     {symbols: []string{"cuGetErrorString"}},
	fnDeviceGetCount:     {symbols: []string{"cuDeviceGetCount"}},
	fnDeviceGet:          {symbols: []string{"cuDeviceGet"}},
	fnDeviceGetName:      {symbols: []string{"cuDeviceGetName"}},
	fnDeviceGetAttribute: {symbols: []string{"cuDeviceGetAttribute"}},
	fnDeviceTotalMem:     {symbols: []string{"cuDeviceTotalMem_v2"}},
	fnCtxCreate:          {symbols: []string{"cuCtxCreate_v2"}}, // _v3 and _v4 take more arguments
	fnCtxDestroy:         {symbols: []string{"cuCtxDestroy_v2"}},
	fnCtxSetCurrent:      {symbols: []string{"cuCtxSetCurrent"}},
	fnMemGetInfo:         {symbols: []string{"cuMemGetInfo_v2"}},
	fnMemAlloc:           {symbols: []string{"cuMemAlloc_v2"}},
	fnMemFree:            {symbols: []string{"cuMemFree_v2"}},
	fnMemHostAlloc:       {symbols: []string{"cuMemHostAlloc"}},
	fnMemFreeHost:        {symbols: []string{"cuMemFreeHost"}},
	fnMemcpyHtoDAsync:    {symbols: []string{"cuMemcpyHtoDAsync_v2"}},
	fnMemcpyDtoHAsync:    {symbols: []string{"cuMemcpyDtoHAsync_v2"}},
	fnMemsetD8Async:      {symbols: []string{"cuMemsetD8Async"}},
	fnStreamCreate:       {symbols: []string{"cuStreamCreate"}},
	fnStreamSynchronize:  {symbols: []string{"cuStreamSynchronize"}},
	fnStreamDestroy:      {symbols: []string{"cuStreamDestroy_v2"}},
	fnEventCreate:        {symbols: []string{"cuEventCreate"}},
	fnEventRecord:        {symbols: []string{"cuEventRecord"}},
	fnEventElapsedTime:   {symbols: []string{"cuEventElapsedTime_v2", "cuEventElapsedTime"}},
	fnEventDestroy:       {symbols: []string{"cuEventDestroy_v2"}},
	fnLinkCreate:         {symbols: []string{"cuLinkCreate_v2"}},
	fnLinkAddData:        {symbols: []string{"cuLinkAddData_v2"}},
	fnLinkComplete:       {symbols: []string{"cuLinkComplete"}},
	fnLinkDestroy:        {symbols: []string{"cuLinkDestroy"}},
	fnModuleLoadDataEx:   {symbols: []string{"cuModuleLoadDataEx"}},
	fnModuleUnload:       {symbols: []string{"cuModuleUnload"}},
	fnModuleGetFunction:  {symbols: []string{"cuModuleGetFunction"}},
	fnFuncGetAttribute:   {symbols: []string{"cuFuncGetAttribute"}},
	fnFuncSetAttribute:   {symbols: []string{"cuFuncSetAttribute"}},
	fnLaunchKernel:       {symbols: []string{"cuLaunchKernel"}},
	fnGraphCreate:        {symbols: []string{"cuGraphCreate"}},
	fnGraphDestroy:       {symbols: []string{"cuGraphDestroy"}},
	// The parameter struct of _v2 only has more fields at its end.
	fnGraphAddKernelNode:           {symbols: []string{"cuGraphAddKernelNode_v2", "cuGraphAddKernelNode"}},
	fnGraphAddEmptyNode:            {symbols: []string{"cuGraphAddEmptyNode"}},
	fnGraphAddEventRecordNode:      {symbols: []string{"cuGraphAddEventRecordNode"}},
	fnGraphAddDependencies:         {symbols: []string{"cuGraphAddDependencies"}, optional: true},
	fnGraphAddDependenciesData:     {symbols: []string{"cuGraphAddDependencies_v2"}, optional: true}, // from 12.3 on
	fnGraphInstantiate:             {symbols: []string{"cuGraphInstantiateWithFlags"}},
	fnGraphUpload:                  {symbols: []string{"cuGraphUpload"}},
	fnGraphLaunch:                  {symbols: []string{"cuGraphLaunch"}},
	fnGraphExecKernelNodeSetParams: {symbols: []string{"cuGraphExecKernelNodeSetParams_v2", "cuGraphExecKernelNodeSetParams"}},
	fnGraphExecDestroy:             {symbols: []string{"cuGraphExecDestroy"}},
}
