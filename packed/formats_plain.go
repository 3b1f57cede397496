package packed

import "tgc/ir"

// Types that store elements one by one.
var plainFormats = []Format{
	{Name: "F32", GGUF: 0, BlockElems: 1, BlockBytes: 4, Plain: ir.F32},
	{Name: "F16", GGUF: 1, BlockElems: 1, BlockBytes: 2, Plain: ir.F16},
	{Name: "BF16", GGUF: 30, BlockElems: 1, BlockBytes: 2, Plain: ir.BF16},
}
