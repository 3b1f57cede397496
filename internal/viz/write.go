package viz

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"strings"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed data.js
var dataJS string

//go:embed page.js
var pageJS string

// Write writes the page as one HTML file. JSON has no < and > of its own, so the data
// cannot end the element in which it stands; and the page runs no script but its own, whose
// hash it names.
func (p *Page) Write(w io.Writer) error {
	data, err := json.Marshal(p) // with <, > and & escaped
	if err != nil {
		return err
	}
	script := dataJS + pageJS
	_, err = strings.NewReplacer(
		"{{title}}", html.EscapeString(strings.ToValidUTF8(p.Title, "?")),
		"{{style}}", pageCSS, "{{style hash}}", hashOf(pageCSS),
		"{{script}}", script, "{{script hash}}", hashOf(script),
		"{{data}}", string(data),
	).WriteString(w, pageHTML)
	return err
}

// hashOf is how a page's policy names what it trusts.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}
