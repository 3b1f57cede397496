// Package word puts together and takes apart the 32-bit words that a GPU's front end
// reads: method headers and their data, entries of the ring, launch descriptors
// (QMDs). What the bits mean is in tables of named fields, taken from NVIDIA's class
// headers (NVIDIA/open-gpu-doc, MIT): a field is never a shift in code.
//
// Start at layout.go; class.go has the methods, encode.go and decode.go the two
// directions.
package word
