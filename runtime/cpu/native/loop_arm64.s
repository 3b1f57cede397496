//go:build linux

#include "go_asm.h"
#include "textflag.h"

// The worker loop and the fault handler, as in loop_amd64.s, whose comments
// hold here too; this file explains only what differs. Everything follows the
// AAPCS64 C ABI.
//
// Registers of the loop: R19 the worker's block, R20 the pool's control,
// R21 the current callRecord, R22 the end of the records.

#define SYS_futex          98
#define SYS_sched_yield    124
#define SYS_sigaltstack    132
#define SYS_rt_sigprocmask 135

#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE_PRIVATE 129

#define IDLE_POLLS    64
#define BARRIER_POLLS 128

// PAUSE: YIELD does nothing on most cores, ISB waits for some 10 ns.
#define PAUSE ISB $15

DATA ·stepEntry(SB)/8, $tgc_native_step(SB)
GLOBL ·stepEntry(SB), NOPTR|RODATA, $8
DATA ·workerEntry(SB)/8, $tgc_native_worker(SB)
GLOBL ·workerEntry(SB), NOPTR|RODATA, $8
DATA ·handlerEntry(SB)/8, $tgc_native_handler(SB)
GLOBL ·handlerEntry(SB), NOPTR|RODATA, $8

// func readTicks() uint64: the virtual counter, 10 ns to 50 ns a tick.
TEXT ·readTicks(SB), NOSPLIT, $0-8
	ISB	$15
	MRS	CNTVCT_EL0, R0
	MOVD	R0, ret+0(FP)
	RET

// SAVE and RESTORE keep all registers that belong to the caller, the vector
// ones too: a kernel that faults leaves them changed.
#define SAVE \
	SUB	$160, RSP; \
	STP	(R29, R30), 0(RSP); \
	STP	(R19, R20), 16(RSP); \
	STP	(R21, R22), 32(RSP); \
	STP	(R23, R24), 48(RSP); \
	STP	(R25, R26), 64(RSP); \
	STP	(R27, g), 80(RSP); \
	FSTPD	(F8, F9), 96(RSP); \
	FSTPD	(F10, F11), 112(RSP); \
	FSTPD	(F12, F13), 128(RSP); \
	FSTPD	(F14, F15), 144(RSP)

#define RESTORE \
	LDP	0(RSP), (R29, R30); \
	LDP	16(RSP), (R19, R20); \
	LDP	32(RSP), (R21, R22); \
	LDP	48(RSP), (R23, R24); \
	LDP	64(RSP), (R25, R26); \
	LDP	80(RSP), (R27, g); \
	FLDPD	96(RSP), (F8, F9); \
	FLDPD	112(RSP), (F10, F11); \
	FLDPD	128(RSP), (F12, F13); \
	FLDPD	144(RSP), (F14, F15); \
	ADD	$160, RSP

// void step(workerBlock *worker0)
TEXT tgc_native_step(SB), NOSPLIT|NOFRAME, $0
	SAVE
	MOVD	R0, R19
	MOVD	workerBlock_control(R19), R20
	MRS	TPIDR_EL0, R1
	MOVD	R1, workerBlock_thread(R19)

	ADD	$control_epoch, R20, R2
	MOVWU	(R2), R1
	ADDW	$1, R1, R1
	MOVW	R1, workerBlock_epoch(R19)
	STLRW	R1, (R2)
	DMB	$0xb // ISH: the look at sleepers comes after it
	MOVWU	control_sleepers(R20), R1
	CBZW	R1, awake
	MOVD	$SYS_futex, R8
	MOVD	R2, R0
	MOVD	$FUTEX_WAKE_PRIVATE, R1
	MOVD	$0x7fffffff, R2
	SVC
awake:
	CALL	tgc_native_run(SB)
	RESTORE
	RET

// void *worker(workerBlock *)
TEXT tgc_native_worker(SB), NOSPLIT|NOFRAME, $0
	SAVE
	MOVD	R0, R19
	MOVD	workerBlock_control(R19), R20
	MRS	TPIDR_EL0, R1
	MOVD	R1, workerBlock_thread(R19)
	MOVD	$SYS_rt_sigprocmask, R8
	MOVD	$2, R0 // SIG_SETMASK
	ADD	$workerBlock_signalMask, R19, R1
	MOVD	ZR, R2
	MOVD	$8, R3
	SVC
	MOVD	$SYS_sigaltstack, R8
	ADD	$workerBlock_altStack, R19, R0
	MOVD	ZR, R1
	SVC

idle:
	MRS	CNTVCT_EL0, R23 // when the worker became idle
	ADD	$control_epoch, R20, R24
look:
	MOVD	$IDLE_POLLS, R3
poll:
	LDARW	(R24), R1
	MOVWU	workerBlock_epoch(R19), R2
	CMPW	R2, R1
	BNE	begin
	PAUSE
	SUBS	$1, R3, R3
	BNE	poll
	MRS	CNTVCT_EL0, R1
	SUB	R23, R1, R1
	MOVD	control_spinTicks(R20), R2
	CMP	R2, R1
	BLO	look

	ADD	$control_sleepers, R20, R4
count:
	LDAXRW	(R4), R1
	ADDW	$1, R1, R1
	STLXRW	R1, (R4), R2
	CBNZW	R2, count
	DMB	$0xb
sleep:
	MOVD	$SYS_futex, R8
	MOVD	R24, R0
	MOVD	$FUTEX_WAIT_PRIVATE, R1
	MOVWU	workerBlock_epoch(R19), R2
	MOVD	ZR, R3 // no timeout
	SVC
	LDARW	(R24), R1
	MOVWU	workerBlock_epoch(R19), R2
	CMPW	R2, R1
	BEQ	sleep
	ADD	$control_sleepers, R20, R4
uncount:
	LDAXRW	(R4), R2
	SUBW	$1, R2, R2
	STLXRW	R2, (R4), R3
	CBNZW	R3, uncount

begin:
	MOVW	R1, workerBlock_epoch(R19)
	MOVWU	control_shutdown(R20), R1
	CBNZW	R1, end
	CALL	tgc_native_run(SB)
	JMP	idle
end:
	MOVD	ZR, R0
	RESTORE
	RET

// run plays the calls of the current step for the worker in R19, R20.
TEXT tgc_native_run(SB), NOSPLIT|NOFRAME, $0
	SUB	$16, RSP
	MOVD	R30, 0(RSP)
	MOVD	control_calls(R20), R21
	MOVD	control_end(R20), R22
	MOVD	R19, R0
	CALL	tgc_native_mark(SB)
	CBNZW	R0, faulted

	MOVWU	control_profile(R20), R0
	CBZW	R0, next
	MOVD	ZR, R0
	CALL	tgc_native_barrier(SB)
	MOVD	workerBlock_index(R19), R0
	CBNZ	R0, next
	MRS	CNTVCT_EL0, R0
	MOVD	R0, control_started(R20)

next:
	CMP	R22, R21
	BHS	done
	MOVWU	workerBlock_epoch(R19), R1
	MOVWU	control_cancelled(R20), R2
	CMPW	R2, R1
	BEQ	after
	MOVWU	control_faulted(R20), R2
	CMPW	R2, R1
	BEQ	after

	// The slab [R8, R9) of this worker; see slab in step.go.
	MOVD	workerBlock_count(R19), R3
	MOVD	callRecord_granules(R21), R4
	MOVD	callRecord_granularity(R21), R5
	MOVD	workerBlock_index(R19), R6
	MUL	R4, R6, R7
	ADD	R3, R7, R7
	SUB	$1, R7, R7
	UDIV	R3, R7, R8
	MUL	R5, R8, R8
	ADD	R4, R7, R7
	UDIV	R3, R7, R9
	MUL	R5, R9, R9
	MOVD	callRecord_units(R21), R10
	CMP	R10, R9
	CSEL	LT, R9, R10, R9
	CMP	R9, R8
	BGE	after

	MOVD	R21, workerBlock_call(R19)
	MOVD	callRecord_args(R21), R0
	MOVD	R8, R1
	MOVD	R9, R2
	MOVD	$1, R3
	MOVW	R3, workerBlock_active(R19)
	MOVD	callRecord_queue(R21), R3
	MOVD	callRecord_fn(R21), R4
	CALL	(R4)
	MOVW	ZR, workerBlock_active(R19)

after:
	MOVD	callRecord_flags(R21), R1
	MOVWU	control_profile(R20), R2
	ORR	R2, R1, R1
	TBZ	$0, R1, advance // const_flagBarrier is bit 0
	ADD	$callRecord__size, R21, R1
	MOVD	ZR, R0
	CMP	R22, R1
	BLO	meet
	MOVD	workerBlock_index(R19), R0
meet:
	CALL	tgc_native_barrier(SB)
	MOVD	workerBlock_index(R19), R0
	CBNZ	R0, advance
	MOVWU	control_profile(R20), R0
	CBZW	R0, advance
	MRS	CNTVCT_EL0, R0
	MOVD	R0, callRecord_tick(R21)
advance:
	ADD	$callRecord__size, R21, R21
	JMP	next

faulted:
	// The handler has set R1 to the worker's block.
	MOVD	R1, R19
	MOVD	workerBlock_control(R19), R20
	MOVD	workerBlock_call(R19), R21
	MOVD	control_end(R20), R22
	JMP	after

done:
	MOVD	0(RSP), R30
	ADD	$16, RSP
	RET

// barrier arrives for the worker in R19, R20 and, if R0 is 0, waits for the
// others.
TEXT tgc_native_barrier(SB), NOSPLIT|NOFRAME, $0
	MOVD	workerBlock_count(R19), R2
	CMP	$1, R2
	BEQ	open
	MOVD	workerBlock_arrives(R19), R1
	ADD	R1, R2, R2
	MOVD	R2, workerBlock_arrives(R19)
	ADD	$control_arrived, R20, R3
arrive:
	LDAXR	(R3), R1
	ADD	$1, R1, R1
	STLXR	R1, (R3), R4
	CBNZW	R4, arrive
	CMP	R2, R1
	BGE	open
	CBNZ	R0, open
wait:
	MOVD	$BARRIER_POLLS, R4
spin:
	LDAR	(R3), R1
	CMP	R2, R1
	BGE	open
	PAUSE
	SUBS	$1, R4, R4
	BNE	spin
	MOVD	$SYS_sched_yield, R8
	SVC
	JMP	wait
open:
	RET

// mark is setjmp.
TEXT tgc_native_mark(SB), NOSPLIT|NOFRAME, $0
	MOVD	R30, workerBlock_savedPC(R0)
	MOVD	RSP, R1
	MOVD	R1, workerBlock_savedSP(R0)
	MOVD	ZR, R0
	RET

// Offsets in siginfo_t and ucontext_t.
#define si_code 8
#define si_addr 16
#define uc_x0   184
#define uc_x1   192
#define uc_sp   432
#define uc_pc   440

// void handler(int signal, siginfo_t *, ucontext_t *)
TEXT tgc_native_handler(SB), NOSPLIT|NOFRAME, $0
	MOVWU	R0, R0
	MOVW	si_code(R1), R3
	CMPW	$0, R3
	BLE	chain
	MRS	TPIDR_EL0, R4
	MOVD	·blocksAddr(SB), R5
	MOVD	·blocksUsed(SB), R6
	CBZ	R6, chain
scan:
	MOVD	workerBlock_thread(R5), R7
	CMP	R4, R7
	BNE	other
	MOVWU	workerBlock_active(R5), R7
	CBNZW	R7, found
other:
	ADD	$workerBlock__size, R5, R5
	SUBS	$1, R6, R6
	BNE	scan
chain:
	MOVD	$·oldHandlers(SB), R9
	MOVD	(R9)(R0<<3), R9
	JMP	(R9)

found:
	MOVW	ZR, workerBlock_active(R5)
	MOVW	R0, workerBlock_faultSignal(R5)
	MOVW	R3, workerBlock_faultCode(R5)
	MOVD	si_addr(R1), R7
	MOVD	R7, workerBlock_faultAddr(R5)
	MOVD	uc_pc(R2), R7
	MOVD	R7, workerBlock_faultPC(R5)
	MOVD	workerBlock_control(R5), R9
	MOVWU	workerBlock_epoch(R5), R7
	MOVW	R7, control_faulted(R9)
	MOVD	workerBlock_savedSP(R5), R7
	MOVD	R7, uc_sp(R2)
	MOVD	workerBlock_savedPC(R5), R7
	MOVD	R7, uc_pc(R2)
	MOVD	$1, R7
	MOVD	R7, uc_x0(R2)
	MOVD	R5, uc_x1(R2)
	RET
