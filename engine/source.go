package engine

import (
	"tgc/ir/program"
	"tgc/render"
	"tgc/target"
)

// ProgramName is that of programs whose source is compared: in a step, names tell kernels
// apart.
const ProgramName = "kernel"

// Source is what a target's renderer prints of a program, under ProgramName.
func Source(p *program.Program, desc *target.Desc) (string, error) {
	r, err := render.For(desc)
	if err != nil {
		return "", err
	}
	named := *p
	named.Name = ProgramName
	return r.Source(&named)
}
