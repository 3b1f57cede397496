package ptxemu

import (
	"math"
	"math/bits"
)

// Loops over whole registers for the instructions that kernels are mostly made
// of. They do what the functions of a lane do, without a call for each; a test
// compares the two.

const (
	low32 = 1<<32 - 1
	all   = ^uint32(0) // lanes
)

// name is the instruction with its modifiers: the key of the tables below.
func (s *statement) name() string {
	text := s.op
	for _, m := range s.mods {
		text += "." + m
	}
	return text
}

// apply1 runs f on the lanes of active, or loop where there is one and all
// lanes take part.
func apply1(loop func(r, x *vector), f func(x uint64) uint64, m uint64, active uint32, r, x *vector) {
	switch {
	case active == all && loop != nil:
		loop(r, x)
	case active == all:
		for i := range r {
			r[i] = f(x[i]) & m
		}
	default:
		for ; active != 0; active &= active - 1 {
			i := bits.TrailingZeros32(active) & 31
			r[i] = f(x[i]) & m
		}
	}
}

func apply2(loop func(r, x, y *vector), f func(x, y uint64) uint64, m uint64, active uint32, r, x, y *vector) {
	switch {
	case active == all && loop != nil:
		loop(r, x, y)
	case active == all:
		for i := range r {
			r[i] = f(x[i], y[i]) & m
		}
	default:
		for ; active != 0; active &= active - 1 {
			i := bits.TrailingZeros32(active) & 31
			r[i] = f(x[i], y[i]) & m
		}
	}
}

func apply3(loop func(r, x, y, z *vector), f func(x, y, z uint64) uint64, m uint64, active uint32, r, x, y, z *vector) {
	switch {
	case active == all && loop != nil:
		loop(r, x, y, z)
	case active == all:
		for i := range r {
			r[i] = f(x[i], y[i], z[i]) & m
		}
	default:
		for ; active != 0; active &= active - 1 {
			i := bits.TrailingZeros32(active) & 31
			r[i] = f(x[i], y[i], z[i]) & m
		}
	}
}

func float(v uint64) float32 { return math.Float32frombits(uint32(v)) }
func word32(v float32) uint64 {
	return uint64(math.Float32bits(v))
}

// loops1 have results of 32 bits in registers of 32.
var loops1 = map[string]func(r, x *vector){
	"cvt.rn.f32.s32": func(r, x *vector) {
		for i := range r {
			r[i] = word32(float32(int32(x[i])))
		}
	},
	"cvt.rn.f32.u32": func(r, x *vector) {
		for i := range r {
			r[i] = word32(float32(uint32(x[i])))
		}
	},
	"neg.f32": func(r, x *vector) {
		for i := range r {
			r[i] = x[i]&low32 ^ 1<<31
		}
	},
}

var (
	add32 = func(r, x, y *vector) {
		for i := range r {
			r[i] = (x[i] + y[i]) & low32
		}
	}
	add64 = func(r, x, y *vector) {
		for i := range r {
			r[i] = x[i] + y[i]
		}
	}
	sub32 = func(r, x, y *vector) {
		for i := range r {
			r[i] = (x[i] - y[i]) & low32
		}
	}
	mul32 = func(r, x, y *vector) {
		for i := range r {
			r[i] = x[i] * y[i] & low32
		}
	}
	addFloat = func(r, x, y *vector) {
		for i := range r {
			r[i] = word32(float(x[i]) + float(y[i]))
		}
	}
	subFloat = func(r, x, y *vector) {
		for i := range r {
			r[i] = word32(float(x[i]) - float(y[i]))
		}
	}
	mulFloat = func(r, x, y *vector) {
		for i := range r {
			r[i] = word32(float(x[i]) * float(y[i]))
		}
	}
)

var loops2 = map[string]func(r, x, y *vector){
	"add.s32": add32, "add.u32": add32, "add.s64": add64, "add.u64": add64, "sub.s32": sub32, "sub.u32": sub32,
	"mul.lo.s32": mul32, "mul.lo.u32": mul32,
	"add.f32": addFloat, "add.rn.f32": addFloat, "sub.f32": subFloat, "sub.rn.f32": subFloat, "mul.f32": mulFloat, "mul.rn.f32": mulFloat,
	"and.b32": func(r, x, y *vector) {
		for i := range r {
			r[i] = x[i] & y[i] & low32
		}
	},
	"or.b32": func(r, x, y *vector) {
		for i := range r {
			r[i] = (x[i] | y[i]) & low32
		}
	},
	"xor.b32": func(r, x, y *vector) {
		for i := range r {
			r[i] = (x[i] ^ y[i]) & low32
		}
	},
	"shl.b32": func(r, x, y *vector) {
		for i := range r {
			r[i] = x[i] << min(y[i], 32) & low32
		}
	},
	"shr.u32": func(r, x, y *vector) {
		for i := range r {
			r[i] = x[i] & low32 >> min(y[i], 32)
		}
	},
	"shr.s32": func(r, x, y *vector) {
		for i := range r {
			r[i] = uint64(int32(x[i])>>min(y[i], 31)) & low32
		}
	},
}

var (
	mad32 = func(r, x, y, z *vector) {
		for i := range r {
			r[i] = (x[i]*y[i] + z[i]) & low32
		}
	}
	fmaFloat = func(r, x, y, z *vector) {
		for i := range r {
			r[i] = word32(fma32(float(x[i]), float(y[i]), float(z[i])))
		}
	}
)

var loops3 = map[string]func(r, x, y, z *vector){
	"mad.lo.s32": mad32, "mad.lo.u32": mad32, "fma.rn.f32": fmaFloat,
	"prmt.b32": func(r, x, y, z *vector) {
		for i := range r {
			r[i] = permute(x[i], y[i], z[i])
		}
	},
}
