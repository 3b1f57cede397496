// Story lets the built-in model tell a story.
package main

import (
	"context"
	"fmt"
	"log"

	"tgc/llm"
	"tgc/llm/story"
	"tgc/runtime/devices"
)

func main() {
	ctx := context.Background()
	file, err := story.Open()
	if err != nil {
		log.Fatal(err)
	}
	model, err := llm.NewModel(file)
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	dev, err := devices.Default()
	if err != nil {
		log.Fatal(err)
	}
	s, err := llm.NewSession(ctx, model, dev, llm.SessionOptions{Context: 32})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	prompt, err := model.Tokenizer.Encode("Once upon a time", true, true)
	if err != nil {
		log.Fatal(err)
	}
	stream := model.Tokenizer.NewStream(false)
	_, err = s.Generate(ctx, llm.Request{Prompt: prompt, Tokens: 4, Token: func(id int32) error {
		fmt.Print(stream.Next(id))
		return nil
	}})
	fmt.Println(err)
}

// Output:
// , there was a<nil>
