// Package trace is the text of what a runtime asked of a kernel driver and stored for a
// GPU, one event a line: to be written on one machine and looked at on another.
//
// A # begins a comment. Numbers are hexadecimal without 0x, bytes two digits each, where
// .. matches any byte. The first line is "hcq-trace 1".
//
//	open PATH = FD
//	ioctl FD REQUEST BYTES = RESULT BYTES | BYTES    the last: what a pointer points to
//	ioctl FD REQUEST =VALUE = RESULT
//	mmap FD BYTES = NAME
//	store NAME+OFFSET BYTES
//	publish
//	doorbell NAME+OFFSET VALUE
//	wait NAME+OFFSET geq VALUE
//	load NAME+OFFSET = BYTES
//	munmap NAME
//	close FD
//	kernel ADDRESS KEY=VALUE..
//	gpu ..                                           said by an emulator; not read
//
// A result is 0 or the name of an errno. Pointers inside structures are written as 0.
package trace
