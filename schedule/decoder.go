package schedule

import "tgc/packed"

// LookupDecoder finds the decode expression of a GGUF type by its name.
func LookupDecoder(format string) (Decoder, bool) { return packed.Lookup(format) }
