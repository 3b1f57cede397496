// Package huggingface reads a model as its publishers store it: a folder with
// config.json, weights in safetensors and tokenizer.json. It translates the three to
// what a GGUF file says, so that everything after it knows one kind of model.
//
// config.go turns hyperparameters into keys, names.go and tensors.go weights into tensors
// of other names and orders, tokenizer.go the vocabulary and
// sentencepiece.go that of folders with tokenizer.model alone; what is not known is an error
// that names it. Start at folder.go.
package huggingface
