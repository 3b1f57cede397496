// Package traffic counts what a kernel touches and computes: bytes read and
// written per argument, each distinct byte once, and multiply-adds. It reads
// the kernel form (pipeline form 2), so the figures are those of the kernel's
// meaning and hold for every plan, device and cache.
//
// The counts are upper bounds that are exact for the accesses models make: an
// index takes at most as many values as the ranges in it have points, as its
// bounds allow and as the buffer has places. An index that comes from memory
// (an expert's number, a token) counts through the ranges of its own index.
//
// Start at traffic.go; access.go counts one access and unions of them,
// ranges.go says which ranges an expression depends on.
package traffic
