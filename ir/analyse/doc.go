// Package analyse answers the questions that passes ask of expressions, each in
// one place: which ranges a node depends on (FreeSets), what it is a product of
// (Factors), whether it uses a node (Uses), what kind of fold it is (IsSum,
// IsTuple).
//
// What the verifiers of package ir need too stands there: ir.Free, the meaning
// of "depends on a range", with its view as lists (ir.FreeRanges); ir.NodeMap;
// ir.Rebuild; ir.Monoid. This package knows no kernel, plan or device.
package analyse
