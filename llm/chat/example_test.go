package chat_test

import (
	"context"
	"fmt"

	"tgc/llm/chat"
	"tgc/llm/template"
)

// A template makes a prompt of messages.
func ExampleTemplate_Render() {
	t, err := chat.NewTemplate("{% for m in messages %}[{{ m.role }}] {{ m.content }} {% endfor %}", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	vars := chat.Variables([]chat.Message{{Role: chat.User, Content: "What is a compiler?"}})
	pieces, err := t.Render(context.Background(), vars)
	fmt.Println(template.Join(pieces), err)
	// Output: [user] What is a compiler?  <nil>
}
