package rm

import (
	"fmt"
	"sync"
)

// Request is something that is asked of a node.
type Request struct {
	Name   string
	Number int    // of an escape, a control or a UVM request
	Struct string // of its argument
}

// requestTables are the three kinds of requests, by the names of their tables.
var requestTables = map[string]func() []Request{
	"escapes": sync.OnceValue(func() []Request { return requestsFrom("escapes") }),
	"control": sync.OnceValue(func() []Request { return requestsFrom("control") }),
	"uvm":     sync.OnceValue(func() []Request { return requestsFrom("uvm") }),
}

func requestsFrom(table string) []Request {
	var list []Request
	readTable(table, func(words []string) {
		list = append(list, Request{Name: words[0], Number: number(words[1]), Struct: words[2]})
	})
	return list
}

// Escapes are requests of the control node and of the GPUs' nodes.
func Escapes() []Request { return requestTables["escapes"]() }

// Controls are what the escape RM_CONTROL asks an object for.
func Controls() []Request { return requestTables["control"]() }

// UVM are requests of the node for unified memory: their numbers have neither a direction
// nor a size.
func UVM() []Request { return requestTables["uvm"]() }

// Parts of an escape's number.
const (
	bothWays   = 3 << 30
	sizeShift  = 16
	sizeMost   = 1<<14 - 1
	escapeType = 'F' << 8
)

// Ioctl is the number of an escape with as many structures as its argument has.
func (r *Request) Ioctl(release, count int) (uint32, error) {
	s, err := Lookup(r.Struct, release)
	if err != nil {
		return 0, err
	}
	size := s.Bytes * count
	if count < 1 || size > sizeMost {
		return 0, fmt.Errorf("rm: %s with %d structures of %d bytes", r.Name, count, s.Bytes)
	}
	return uint32(bothWays | size<<sizeShift | escapeType | r.Number), nil
}

// Classes are the classes of objects of a generation of GPUs.
type Classes struct {
	Generation                         string
	UserMode, Channel, Compute, Copies int
}

// Generations lists the classes by generation.
var Generations = sync.OnceValue(func() []Classes {
	var list []Classes
	readTable("classes", func(words []string) {
		list = append(list, Classes{words[0], number(words[1]), number(words[2]), number(words[3]), number(words[4])})
	})
	return list
})
