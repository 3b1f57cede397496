// Package cuda renders programs as CUDA C (pipeline form 4 to 5). Before: a
// program. After: one translation unit without headers, with one kernel, which
// NVRTC or nvcc compiles for sm_75 and everything later. Render is a pure
// function.
//
// A program means the same as in render/ptx, and gives the same bits: every
// rounding is stated (__fmul_rn, __fmaf_rn: nothing is contracted, whatever the
// compiler's flags), signed integers that may wrap are computed unsigned, shifts
// past the width are limited. Instructions that CUDA C has no function for
// (mma.sync, griddepcontrol, policies of the first cache, halves
// without their header) are inline assembly in small helpers, of which a text
// contains those that it uses (helpers.go).
//
// Package render/gpu selects the instructions; this package prints each as a line
// of C. Every value is a variable of a C type: int, unsigned, long long, float, ..
//
// Start at render.go; types.go has types and literals, variables.go variables and
// words, helpers.go what CUDA C has no function for.
package cuda
