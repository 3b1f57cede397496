// Package rulecheck tests sets of rewrite rules by machine: every rule must
// fire often enough on sampled nodes that satisfy its guards, keep the value
// bit for bit on sampled inputs (all inputs, where they are few), lower its
// set's measure, and whole sets must be idempotent. Any package that writes
// rules calls Check in one test.
package rulecheck
