// Package chat holds conversations with a model: turns become a prompt by the model's
// own template, answers stream as text, and what the cache holds of the conversation is
// not computed again.
//
//	template.go      messages -> pieces of text -> tokens
//	conversation.go  turns, the prompt's place in the cache, what is dropped when it is full
//	answer.go        one answer: tokens -> text, stops, why it ended
//	file.go          conversations as JSON files
package chat
