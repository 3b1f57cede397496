package gputest

import (
	"encoding/binary"
	"math/rand/v2"

	"tgc/ir/program"
)

// Fill makes contents for the buffers of a program that every kernel can read:
// bytes below 0x3c are finite and small as floats of any size, scales of packed
// weights among them; integers of 4 and 8 bytes, which may be indices, are 1.
func Fill(p *program.Program, r *rand.Rand) map[int][]byte {
	buffers := make(map[int][]byte)
	for i := range p.Params {
		q := &p.Params[i]
		if q.Kind != program.ParamBuffer {
			continue
		}
		data := make([]byte, q.Bytes)
		switch d := q.Value.Type.Elem; {
		case d.IsInt() && d.Size() >= 4:
			for at := 0; at+d.Size() <= len(data); at += d.Size() {
				binary.LittleEndian.PutUint32(data[at:], 1)
			}
		default:
			for at := 0; at+8 <= len(data); at += 8 {
				binary.LittleEndian.PutUint64(data[at:], r.Uint64()&0x3b3b3b3b3b3b3b3b)
			}
		}
		buffers[q.Slot] = data
	}
	return buffers
}
