// Package processor names the core of this machine as LLVM does, whatever LLVM is installed: one that is older than a
// core takes it for an earlier one, with that one's ways to read memory.
package processor

// Name is LLVM's name of the machine's core, empty where the table does not have it or the system does not tell.
func Name() string { return identify().name() }

// identity is what a processor says of itself (CPUID's leaf 0 and 1, with the extended family and model).
type identity struct {
	vendor        string
	family, model int
}

// named is a row of the table: models of a family from one number to another.
type named struct {
	vendor      string
	family      int
	first, last int
	name        string
}

const (
	amd   = "AuthenticAMD"
	intel = "GenuineIntel"
)

// cores are those that target.ForCPU tells from others by more than features, and their successors. Sources: AMD's
// revision guides; Intel's optimisation manual; LLVM's TargetParser/Host.cpp.
var cores = []named{
	{amd, 0x19, 0x10, 0x1f, "znver4"},
	{amd, 0x19, 0x60, 0x7f, "znver4"},
	{amd, 0x19, 0xa0, 0xaf, "znver4"},
	{amd, 0x1a, 0x00, 0x7f, "znver5"},
	{intel, 6, 143, 143, "sapphirerapids"},
	{intel, 6, 207, 207, "emeraldrapids"},
}

func (id identity) name() string {
	for _, c := range cores {
		if id.vendor == c.vendor && id.family == c.family && c.first <= id.model && id.model <= c.last {
			return c.name
		}
	}
	return ""
}
