package engine

import (
	"tgc/schedule"
	"tgc/search/database"
	"tgc/target"
)

// Decision is what a rule of the schedule was told to do with a value.
type Decision struct {
	schedule.Decision
	Origin Origin // FromGiven by Config.Decide, or FromDatabase
}

// decisions are those of the database, and Config's.
func (c *Config) decisions(desc *target.Desc) schedule.Decisions {
	if c.DB == "" || c.IgnoreDB {
		return c.Decide
	}
	list, bad := database.Open(c.DB).Decisions(desc)
	for _, err := range bad {
		c.warn("%v", err)
	}
	return list.With(c.Decide.List()...)
}

// Decided is what was decided of a rule and a value, for those who ask outside of the schedule.
func (c *Config) Decided(desc *target.Desc, rule schedule.Rule, value string) (Decision, bool) {
	for _, d := range c.decisions(desc).List() {
		if d.Rule == rule && d.Value == value {
			return usedDecisions(schedule.Decisions{}.With(d), c.Decide)[0], true
		}
	}
	return Decision{}, false
}

// usedDecisions says where each of some decisions comes from.
func usedDecisions(used, given schedule.Decisions) (list []Decision) {
	for _, d := range used.List() {
		origin := FromDatabase
		if given.Has(d) {
			origin = FromGiven
		}
		list = append(list, Decision{d, origin})
	}
	return list
}
