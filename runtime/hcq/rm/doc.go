// Package rm has the structures of NVIDIA's resource manager, the kernel driver of desktop
// and datacentre GPUs, as tables: what a queue of a Hopper GPU would be asked for with. They
// were read in the headers of the open kernel modules (branch 580; where 570 and 610 differ,
// both). Nothing here or elsewhere in this program opens its nodes.
package rm
