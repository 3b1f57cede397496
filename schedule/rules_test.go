package schedule_test

import (
	"maps"
	"testing"

	"tgc/schedule"
)

func TestParseRules(t *testing.T) {
	all, err := schedule.ParseRules("all,-R3,-sum-integers", nil)
	if err != nil || !maps.Equal(all, schedule.AllRules().Without("group-contractions", "sum-integers")) {
		t.Errorf("got %s, %v", all, err)
	}
	back, err := schedule.ParseRules(all.String(), nil)
	if err != nil || !maps.Equal(back, all) {
		t.Errorf("%s parses back as %s, %v", all, back, err)
	}
	if _, err := schedule.ParseRules("R99", nil); err == nil {
		t.Error("an unknown rule is no error")
	}
}
