// Package packed describes the packed formats of GGUF tensors as data: a row
// per type with its block, its fields, its decode expression and its tables.
//
// It is no pass: package schedule asks a row for the expression of a DECODE node,
// package kernel for the byte address of a FIELD, and neither knows a format by
// name. There are no decode loops here: Decode only builds UOps, which the passes
// then treat like any other.
//
// What an expression promises to the passes that rewrite it:
//
//   - Element k of a row is cut into digits, (k/c)%m with constant c and m, so
//     that every FIELD index is affine once k is a sum of digits. Bytes are
//     never flattened across fields or shifted as one wide word.
//   - Every FIELD and table index is in bounds for every k, also in the arm of
//     a WHERE that is not taken.
//   - Small integers stay in u8, u16 or i8 until one exact CAST to f32.
//   - The value is a product of factors, coarse ones first: (d * sc) * q, and
//     where a format has a minimum, a difference of two products. This order
//     also gives the same bits as the reference decoders.
//
// Plain types (F32, F16, BF16) are rows too, so that a caller can treat the type
// of any tensor alike: their Decode is a LOAD and a CAST.
//
// A Layout says where the bytes of a field lie: in GGUF's own order (Identity),
// in planes of one field each (Planes), or with sixteen rows interleaved (Records).
// Some types have another code for records (Recoded): blocks whose weights are taken
// out of words with masks, shifts and one short table.
//
// Start at format.go, then decode.go; the rows are in the formats_*.go files.
package packed
