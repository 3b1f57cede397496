#include "textflag.h"

// func barrier()
TEXT ·barrier(SB),NOSPLIT,$0-0
	MFENCE
	RET
