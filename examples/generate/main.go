// Generate runs a language model from a GGUF file:
//
//	go run ./examples/generate model.gguf "Once upon a time"
//
// Without a file it runs the small built-in model.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"tgc/llm"
	"tgc/llm/story"
	"tgc/runtime/devices"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	model, err := open(args)
	if err != nil {
		return err
	}
	defer model.Close()
	dev, err := devices.Default()
	if err != nil {
		return err
	}
	session, err := llm.NewSession(ctx, model, dev, llm.SessionOptions{Context: 256})
	if err != nil {
		return err
	}
	defer session.Close()

	text := "Once upon a time"
	if len(args) > 1 {
		text = args[1]
	}
	prompt, err := model.Tokenizer.Encode(text, true, true)
	if err != nil {
		return err
	}
	stream := model.Tokenizer.NewStream(false)
	result, err := session.Generate(ctx, llm.Request{
		Prompt:   prompt,
		Tokens:   64,
		Sampling: llm.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.95, Seed: 1},
		Token: func(id int32) error {
			_, err := fmt.Print(stream.Next(id))
			return err
		},
	})
	if err != nil {
		return err
	}
	fmt.Printf("%s\n%.1f tokens a second\n", stream.Flush(), float64(result.DecodeTokens)/result.Decode.Seconds())
	return nil
}

func open(args []string) (*llm.Model, error) {
	if len(args) > 0 {
		return llm.Open(args[0])
	}
	file, err := story.Open()
	if err != nil {
		return nil, err
	}
	return llm.NewModel(file)
}
