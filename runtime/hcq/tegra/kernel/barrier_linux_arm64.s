#include "textflag.h"

// func barrier()
// A release store orders what the processors see of ordinary memory; a device that reads
// write-combined memory needs the whole system's barrier (SY).
TEXT ·barrier(SB),NOSPLIT,$0-0
	DMB	$0xf
	RET
