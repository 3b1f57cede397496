package llm_test

import (
	"context"
	"fmt"
	"strings"

	"tgc/llm"
	"tgc/llm/story"
	"tgc/runtime/devices"
)

// A model goes on from a prompt; tokens stream as they come.
func ExampleSession_Generate() {
	ctx := context.Background()
	file, err := story.Open() // or llm.Open("model.gguf")
	if err != nil {
		fmt.Println(err)
		return
	}
	model, err := llm.NewModel(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.Close()
	dev, err := devices.Default()
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := llm.NewSession(ctx, model, dev, llm.SessionOptions{Context: 32})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	prompt, err := model.Tokenizer.Encode("Once upon a time", true, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	var text strings.Builder
	stream := model.Tokenizer.NewStream(false)
	result, err := s.Generate(ctx, llm.Request{Prompt: prompt, Tokens: 4, Token: func(id int32) error {
		text.WriteString(stream.Next(id))
		return nil
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d tokens: %s\n", len(result.Tokens), text.String())
	// Output: 4 tokens: , there was a
}
