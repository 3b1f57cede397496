package rulecheck_test

import (
	"testing"

	"tgc/rewrite"
	"tgc/rewrite/rulecheck"
)

func TestRules(t *testing.T) { rulecheck.Check(t, rulecheck.Default, rewrite.Sets()...) }

func TestSimplifyWhole(t *testing.T) { rulecheck.CheckWhole(t, 20000, rewrite.Sets()...) }
