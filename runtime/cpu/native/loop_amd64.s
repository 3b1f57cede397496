//go:build linux

#include "go_asm.h"
#include "textflag.h"

// The worker loop and the fault handler. Everything here follows the System V
// C ABI, runs on system stacks and never enters Go. Offsets of control,
// workerBlock and callRecord (layout.go) come from go_asm.h.
//
// Registers of the loop: R12 the worker's block, R13 the pool's control,
// BX the current callRecord, R14 the end of the records.

#define SYS_rt_sigprocmask 14
#define SYS_sched_yield    24
#define SYS_sigaltstack    131
#define SYS_futex          202

#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE_PRIVATE 129

// Polls between two looks at the clock, or two offers of the core. A poll
// takes 40 ns (Zen 5). Where other processes push two workers onto one core a
// launch takes as long as the polls before the core is offered: 74 us with
// 2048, 11 with 256; without such neighbours the number makes no difference.
#define IDLE_POLLS    64
#define BARRIER_POLLS 64

// Addresses of the C functions below, for Go.
DATA ·stepEntry(SB)/8, $tgc_native_step(SB)
GLOBL ·stepEntry(SB), NOPTR|RODATA, $8
DATA ·workerEntry(SB)/8, $tgc_native_worker(SB)
GLOBL ·workerEntry(SB), NOPTR|RODATA, $8
DATA ·handlerEntry(SB)/8, $tgc_native_handler(SB)
GLOBL ·handlerEntry(SB), NOPTR|RODATA, $8

// func readTicks() uint64
TEXT ·readTicks(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	MOVQ	AX, ret+0(FP)
	RET

// SAVE and RESTORE bracket a C function; in between the stack is aligned.
#define SAVE \
	PUSHQ	BP; \
	MOVQ	SP, BP; \
	PUSHQ	BX; \
	PUSHQ	R12; \
	PUSHQ	R13; \
	PUSHQ	R14; \
	PUSHQ	R15; \
	SUBQ	$8, SP

#define RESTORE \
	ADDQ	$8, SP; \
	POPQ	R15; \
	POPQ	R14; \
	POPQ	R13; \
	POPQ	R12; \
	POPQ	BX; \
	POPQ	BP

// void step(workerBlock *worker0): starts a step and runs worker 0's part.
TEXT tgc_native_step(SB), NOSPLIT|NOFRAME, $0
	SAVE
	MOVQ	DI, R12
	MOVQ	workerBlock_control(R12), R13
	MOVQ	0(FS), AX // the thread pointer: glibc stores it at its own address
	MOVQ	AX, workerBlock_thread(R12)

	// Raise the epoch with a full fence: the look at sleepers must come
	// after it, as a worker counts itself a sleeper before it looks at epoch.
	MOVL	control_epoch(R13), AX
	INCL	AX
	MOVL	AX, workerBlock_epoch(R12)
	XCHGL	AX, control_epoch(R13)
	CMPL	control_sleepers(R13), $0
	JEQ	awake
	MOVL	$SYS_futex, AX
	LEAQ	control_epoch(R13), DI
	MOVL	$FUTEX_WAKE_PRIVATE, SI
	MOVL	$0x7fffffff, DX
	SYSCALL
awake:
	CALL	tgc_native_run(SB)
	RESTORE
	RET

// void *worker(workerBlock *): the life of workers 1 and up.
TEXT tgc_native_worker(SB), NOSPLIT|NOFRAME, $0
	SAVE
	MOVQ	DI, R12
	MOVQ	workerBlock_control(R12), R13
	MOVQ	0(FS), AX
	MOVQ	AX, workerBlock_thread(R12)
	MOVL	$SYS_rt_sigprocmask, AX
	MOVL	$2, DI // SIG_SETMASK
	LEAQ	workerBlock_signalMask(R12), SI
	XORL	DX, DX
	MOVL	$8, R10
	SYSCALL
	MOVL	$SYS_sigaltstack, AX
	LEAQ	workerBlock_altStack(R12), DI
	XORL	SI, SI
	SYSCALL

idle:
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	MOVQ	AX, R15 // when the worker became idle
look:
	MOVL	$IDLE_POLLS, CX
poll:
	MOVL	control_epoch(R13), AX
	CMPL	AX, workerBlock_epoch(R12)
	JNE	begin
	PAUSE
	DECL	CX
	JNE	poll
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	SUBQ	R15, AX
	CMPQ	AX, control_spinTicks(R13)
	JCS	look

	LOCK
	INCL	control_sleepers(R13)
sleep:
	MOVL	$SYS_futex, AX
	LEAQ	control_epoch(R13), DI
	MOVL	$FUTEX_WAIT_PRIVATE, SI
	MOVL	workerBlock_epoch(R12), DX
	XORL	R10, R10 // no timeout
	SYSCALL
	MOVL	control_epoch(R13), AX
	CMPL	AX, workerBlock_epoch(R12)
	JEQ	sleep
	LOCK
	DECL	control_sleepers(R13)

begin:
	MOVL	AX, workerBlock_epoch(R12)
	CMPL	control_shutdown(R13), $0
	JNE	end
	CALL	tgc_native_run(SB)
	JMP	idle
end:
	XORL	AX, AX
	RESTORE
	RET

// run plays the calls of the current step for the worker in R12, R13.
TEXT tgc_native_run(SB), NOSPLIT|NOFRAME, $0
	SUBQ	$8, SP
	MOVQ	control_calls(R13), BX
	MOVQ	control_end(R13), R14
	MOVQ	R12, DI
	CALL	tgc_native_mark(SB)
	TESTL	AX, AX
	JNE	faulted

	CMPL	control_profile(R13), $0
	JEQ	next
	XORL	DX, DX
	CALL	tgc_native_barrier(SB) // the first call's time holds no waking up
	CMPQ	workerBlock_index(R12), $0
	JNE	next
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	MOVQ	AX, control_started(R13)

next:
	CMPQ	BX, R14
	JCC	done
	MOVL	workerBlock_epoch(R12), AX
	CMPL	AX, control_cancelled(R13)
	JEQ	after
	CMPL	AX, control_faulted(R13)
	JEQ	after

	// The slab [R8, R9) of this worker; see slab in step.go.
	MOVQ	workerBlock_count(R12), CX
	MOVQ	callRecord_granules(BX), R10
	MOVQ	callRecord_granularity(BX), R11
	MOVQ	R10, AX
	IMULQ	workerBlock_index(R12), AX
	LEAQ	-1(AX)(CX*1), AX
	MOVQ	AX, R15
	XORL	DX, DX
	DIVQ	CX
	IMULQ	R11, AX
	MOVQ	AX, R8
	LEAQ	(R15)(R10*1), AX
	XORL	DX, DX
	DIVQ	CX
	IMULQ	R11, AX
	MOVQ	AX, R9
	MOVQ	callRecord_units(BX), AX
	CMPQ	R9, AX
	CMOVQGT	AX, R9
	CMPQ	R8, R9
	JGE	after

	MOVQ	BX, workerBlock_call(R12)
	MOVQ	callRecord_args(BX), DI
	MOVQ	R8, SI
	MOVQ	R9, DX
	MOVQ	callRecord_queue(BX), CX
	MOVL	$1, workerBlock_active(R12)
	MOVQ	callRecord_fn(BX), AX
	CALL	AX
	MOVL	$0, workerBlock_active(R12)

after:
	MOVQ	callRecord_flags(BX), AX
	ORL	control_profile(R13), AX
	TESTL	$const_flagBarrier, AX
	JEQ	advance
	// Behind the last call only worker 0 waits. The others must not touch
	// the step any more: it may be freed or changed.
	LEAQ	callRecord__size(BX), AX
	XORL	DX, DX
	CMPQ	AX, R14
	JCS	meet
	MOVQ	workerBlock_index(R12), DX
meet:
	CALL	tgc_native_barrier(SB)
	CMPQ	workerBlock_index(R12), $0
	JNE	advance
	CMPL	control_profile(R13), $0
	JEQ	advance
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	MOVQ	AX, callRecord_tick(BX)
advance:
	ADDQ	$callRecord__size, BX
	JMP	next

faulted:
	// The handler has set DI to the worker's block. All other registers
	// are the kernel's.
	CLD
	MOVQ	DI, R12
	MOVQ	workerBlock_control(R12), R13
	MOVQ	workerBlock_call(R12), BX
	MOVQ	control_end(R13), R14
	JMP	after

done:
	ADDQ	$8, SP
	RET

// barrier arrives for the worker in R12, R13 and, if DX is 0, waits for the
// others.
TEXT tgc_native_barrier(SB), NOSPLIT|NOFRAME, $0
	MOVQ	workerBlock_count(R12), R8
	CMPQ	R8, $1
	JEQ	open
	ADDQ	workerBlock_arrives(R12), R8
	MOVQ	R8, workerBlock_arrives(R12)
	MOVL	$1, AX
	LOCK
	XADDQ	AX, control_arrived(R13)
	INCQ	AX
	CMPQ	AX, R8
	JGE	open
	TESTQ	DX, DX
	JNE	open
wait:
	MOVL	$BARRIER_POLLS, CX
spin:
	MOVQ	control_arrived(R13), AX
	CMPQ	AX, R8
	JGE	open
	PAUSE
	DECL	CX
	JNE	spin
	// Perhaps the worker we wait for has no core.
	MOVL	$SYS_sched_yield, AX
	SYSCALL
	JMP	wait
open:
	RET

// mark is setjmp: it returns 0, and a fault returns 1 from it once more.
TEXT tgc_native_mark(SB), NOSPLIT|NOFRAME, $0
	MOVQ	0(SP), AX
	MOVQ	AX, workerBlock_savedPC(DI)
	LEAQ	8(SP), AX
	MOVQ	AX, workerBlock_savedSP(DI)
	XORL	AX, AX
	RET

// Offsets in siginfo_t and ucontext_t.
#define si_code 8
#define si_addr 16
#define uc_rdi  104
#define uc_rax  144
#define uc_rsp  160
#define uc_rip  168

// void handler(int signal, siginfo_t *, ucontext_t *): a fault of a thread
// that is inside a kernel goes on behind the call of the kernel; any other
// goes to the handler that was there before, which is Go's.
TEXT tgc_native_handler(SB), NOSPLIT|NOFRAME, $0
	MOVL	DI, DI
	CMPL	si_code(SI), $0
	JLE	chain // sent by a process, not by an instruction
	MOVQ	0(FS), AX
	MOVQ	·blocksAddr(SB), CX
	MOVQ	·blocksUsed(SB), R8
	TESTQ	R8, R8
	JEQ	chain
scan:
	CMPQ	workerBlock_thread(CX), AX
	JNE	other
	CMPL	workerBlock_active(CX), $0
	JNE	found
other:
	ADDQ	$workerBlock__size, CX
	DECQ	R8
	JNE	scan
chain:
	LEAQ	·oldHandlers(SB), R9
	MOVQ	(R9)(DI*8), R9
	JMP	R9

found:
	MOVL	$0, workerBlock_active(CX)
	MOVL	DI, workerBlock_faultSignal(CX)
	MOVL	si_code(SI), AX
	MOVL	AX, workerBlock_faultCode(CX)
	MOVQ	si_addr(SI), AX
	MOVQ	AX, workerBlock_faultAddr(CX)
	MOVQ	uc_rip(DX), AX
	MOVQ	AX, workerBlock_faultPC(CX)
	MOVQ	workerBlock_control(CX), R9
	MOVL	workerBlock_epoch(CX), AX
	MOVL	AX, control_faulted(R9)
	MOVQ	workerBlock_savedSP(CX), AX
	MOVQ	AX, uc_rsp(DX)
	MOVQ	workerBlock_savedPC(CX), AX
	MOVQ	AX, uc_rip(DX)
	MOVQ	CX, uc_rdi(DX)
	MOVQ	$1, uc_rax(DX)
	RET
