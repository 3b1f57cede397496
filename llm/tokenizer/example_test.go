package tokenizer_test

import (
	"fmt"

	"tgc/llm/tokenizer"
)

func Example() {
	v := tokenizer.NewVocabulary("gpt2", "gpt-2")
	v.Tokens = []string{"h", "i", "hi", "Ġ", "Ġhi", "<|im_end|>"}
	v.Merges = []string{"h i", "Ġ hi"}
	t, err := tokenizer.New(v)
	if err != nil {
		fmt.Println(err)
		return
	}
	ids, _ := t.Encode("hi hi<|im_end|>", false, true)
	fmt.Println(ids, t.IsEndOfText(ids[2]))

	stream := t.NewStream(false)
	for _, id := range ids {
		fmt.Print(stream.Next(id))
	}
	fmt.Println(stream.Flush())
	// Output:
	// [2 4 5] true
	// hi hi
}
