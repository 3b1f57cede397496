package render

import (
	"slices"
	"testing"
)

// A line belongs to the comment before it, until the function ends.
func TestSplitAnnotated(t *testing.T) {
	got := splitAnnotated(".entry k {\n\t// %1:f32 = load %0\n\tld.f32 %f1;\n\tcvt;\n\t// store %0 %1\n\tst;\n}\n.end\n")
	want := []Line{{Text: ".entry k {"}, {Text: "\t// %1:f32 = load %0"}, {"\tld.f32 %f1;", "%1:f32 = load %0"}, {"\tcvt;", "%1:f32 = load %0"},
		{Text: "\t// store %0 %1"}, {"\tst;", "store %0 %1"}, {Text: "}"}, {Text: ".end"}}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if !got[1].IsComment() || got[2].IsComment() {
		t.Error("a comment is not told from code")
	}
}
