package hcq

// Descriptors are the addresses of a step's launch descriptors, in order.
func (r *Recording) Descriptors() []uint64 {
	var list []uint64
	for _, c := range r.calls {
		list = append(list, r.own.Address+uint64(c.qmd))
	}
	return list
}
