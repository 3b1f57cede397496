package tegra

import (
	"encoding/binary"
	"fmt"

	"tgc/runtime/hcq"
)

// The record that the kernel writes when a channel ends.
const (
	notificationBytes  = 16
	notificationCode   = 8
	notificationStatus = 14
	statusFired        = 0xffff
)

// notifications are the codes of that record.
var notifications = map[uint32]string{
	8: "the GPU was wanted by others for too long", 12: "a software method", 13: "an exception of the scheduler or of a multiprocessor",
	24: "a semaphore was waited for too long", 25: "an illegal notification", 31: "an MMU fault", 32: "a wrong entry, header or method in the queue",
	37: "an unimplemented method", 43: "the channel was reset", 80: "a pushbuffer checksum",
}

// warpErrors are what a multiprocessor says of a warp.
var warpErrors = map[uint32]string{
	0x1: "stack", 0x2: "API stack", 0x4: "program counter wrapped", 0x5: "misaligned program counter", 0x6: "program counter overflow",
	0x8: "misaligned register", 0x9: "illegal instruction encoding", 0xb: "illegal instruction parameter", 0xd: "register out of range",
	0xe: "address out of range", 0xf: "misaligned address", 0x10: "address of another space: an access in a window", 0x12: "constant address",
	0x17: "MMU fault", 0x20: "refused by the MMU",
}

const smStateBytes = 24

// Fault is what the error notifiers and the multiprocessors say; nil for nothing.
func (b *Board) Fault() error {
	for i := range b.channels {
		record := b.channels[i].notifier.Host[:notificationBytes]
		if binary.LittleEndian.Uint16(record[notificationStatus:]) == statusFired {
			return b.faultOf(record)
		}
	}
	return nil
}

func (b *Board) faultOf(record []byte) error {
	f := &hcq.BoardFault{Code: binary.LittleEndian.Uint32(record[notificationCode:])}
	f.Meaning = notifications[f.Code]
	if f.Meaning == "" {
		f.Meaning = "of no known meaning"
	}
	states := make([]byte, b.sms*smStateBytes)
	args := smStatesArgs{Count: uint32(b.sms), BufferSize: uint64(len(states))}
	if err := callPointing(b.port, b.group, tsgReadSMStates, &args, states, 8); err != nil {
		return fmt.Errorf("%w (and its place could not be read: %w)", f, err)
	}
	for ; len(states) > 0; states = states[smStateBytes:] {
		if esr := binary.LittleEndian.Uint32(states[4:]); esr != 0 {
			f.WarpESR, f.Warp, f.PC = esr, warpErrors[esr&0xffff], binary.LittleEndian.Uint64(states[8:])
			break
		}
	}
	return f
}
