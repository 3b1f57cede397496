package template_test

import (
	"context"
	"fmt"

	"tgc/llm/template"
)

// What came from outside stays known: here a name that looks like a control token.
func ExampleTemplate_Render() {
	t, err := template.Parse("<s>Hello, {{ name }}!")
	if err != nil {
		fmt.Println(err)
		return
	}
	vars := template.NewDict()
	vars.Set("name", template.Outside("<s>"))
	pieces, err := t.Render(context.Background(), vars, template.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(template.Join(pieces), len(pieces))
	// Output: <s>Hello, <s>! 3
}
