package schedule_test

import (
	"testing"

	"tgc/schedule"
	"tgc/schedule/state"
)

func TestParseRules(t *testing.T) {
	all, err := schedule.ParseRules("all,-R3,-distribute-offsets", schedule.NoRules)
	if err != nil || all != schedule.AllRules.Without(state.SplitGroups, state.DistributeOffsets) {
		t.Errorf("got %s, %v", all, err)
	}
	back, err := schedule.ParseRules(all.String(), schedule.NoRules)
	if err != nil || back != all {
		t.Errorf("%s parses back as %s, %v", all, back, err)
	}
	if _, err := schedule.ParseRules("R99", schedule.NoRules); err == nil {
		t.Error("an unknown rule is no error")
	}
}
