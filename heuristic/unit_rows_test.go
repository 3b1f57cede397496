package heuristic_test

import (
	"strings"
	"testing"

	"tgc/heuristic"
	"tgc/kernel/plan"
	"tgc/packed"
)

// A work unit has as many rows as make the order of a token's scores a small part of it, and leaves units to share; where the
// numbers of experts are loaded, one row.
func TestRowsOfUnits(t *testing.T) {
	for _, c := range []struct {
		name                  string
		format                string
		records               int
		tokens, used, rows, k int64
		loaded                bool
		least, most           int64
	}{
		{name: "words", format: "Q6_K", tokens: 2, used: 8, rows: 2048, k: 1024, least: 32, most: 128},
		{name: "interleaved", format: "Q4_K", records: packed.RecordBits, tokens: 2, used: 8, rows: 2048, k: 1024, least: 2, most: 8},
		{name: "long rows", format: "Q6_K", tokens: 2, used: 8, rows: 2048, k: 8192, least: 1, most: 8},
		{name: "few rows", format: "Q6_K", tokens: 1, used: 2, rows: 256, k: 1024, least: 1, most: 2},
		{name: "odd rows", format: "Q6_K", tokens: 3, used: 5, rows: 1031, k: 1024, least: 16, most: 64},
		{name: "loaded", format: "Q6_K", used: 8, rows: 2048, k: 1024, loaded: true, least: 1, most: 1},
	} {
		desc := mustTarget(t, "llvm:sapphirerapids").WithRecords(c.records)
		b := newBuilder()
		sink := b.rankedExperts(c.format, c.tokens, c.used, 16, c.rows, c.k)
		if c.loaded {
			b = newBuilder()
			sink = b.experts(c.format, c.used, 16, c.rows, c.k)
		}
		chosen := choose(t, b, sink, desc, heuristic.Knobs{})
		rows := int64(1)
		for _, o := range chosen.Plan.Opts {
			if o.Kind == plan.ROLL {
				rows = o.Amount
			}
		}
		if rows < c.least || rows > c.most {
			t.Errorf("%s: %d rows a unit, want %d to %d: %s", c.name, rows, c.least, c.most, chosen.Plan)
		}
	}
	for _, rows := range []int64{256, 259} {
		b, desc := newBuilder(), mustTarget(t, "llvm:sapphirerapids")
		sink := b.rankedExperts("Q6_K", 4, 5, 8, rows, 256)
		chosen := choose(t, b, sink, desc, heuristic.Knobs{})
		if !strings.Contains(chosen.Plan.String(), "ROLL s2") {
			t.Errorf("%d rows: %s", rows, chosen.Plan)
		}
		checkPlan(t, b.Arena, sink, chosen.Plan, desc, nil)
	}
}

// Interleaved rows stay lanes where the activations of a kernel, gathered for many tiles, have no room as words.
func TestRecordsOfManyTiles(t *testing.T) {
	desc := mustTarget(t, "llvm:sapphirerapids").WithRecords(packed.MostRecordBits)
	for _, c := range []struct {
		groups, tokens int64
		words          bool
	}{{4, 8, true}, {64, 8, false}, {256, 3, false}} {
		b := newBuilder()
		chosen := choose(t, b, b.grouped("Q4_K", c.groups, c.tokens, 1024, 1024), desc, heuristic.Knobs{})
		text := chosen.Plan.String()
		if strings.Contains(text, "PACK") != c.words || !strings.Contains(text, "VECTOR s2 16") || strings.Contains(text, "VECTOR r") {
			t.Errorf("%d tiles of %d tokens, words %v: %s", c.groups, c.tokens, c.words, text)
		}
	}
}
