package processor

import "testing"

func TestParse(t *testing.T) {
	const zen4 = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\ncpu family\t: 6\n"
	for text, want := range map[string]string{
		zen4: "znver4",
		"vendor_id : AuthenticAMD\ncpu family : 26\nmodel : 2\n":  "znver5",
		"vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 1\n":  "", // Zen 3
		"vendor_id : GenuineIntel\ncpu family : 6\nmodel : 143\n": "sapphirerapids",
		"vendor_id : GenuineIntel\ncpu family : 6\nmodel : x\n":   "",
		"CPU implementer : 0x41\n":                                "",
		"":                                                        "",
	} {
		if got := parse(text).name(); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
