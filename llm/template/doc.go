// Package template renders the chat templates that model files carry: a subset of
// Jinja, large enough for them and bounded in what it may cost. It knows no model and
// no tokenizer: variables in, pieces of text out.
//
//	source -> tokens (lex.go) -> tree (parse*.go) -> pieces (eval*.go)
//
// Two things set it apart from other implementations.
//
// Every string knows which of its characters the template's author wrote and which
// came from outside, in the variables ([Text]). All operations on strings keep that.
// A tokenizer can therefore turn the template's "<|im_end|>" into a control token and
// leave a user's "<|im_end|>" the ten characters that it is.
//
// A template comes from a file of the internet: [Limits] bounds steps, depth, text and
// output, and the context's end stops a rendering. Nothing in it reads a file, a clock
// (but through [Options]) or the network.
//
// Where Jinja2 3.1 and this package both accept a template, the text is the same, with
// trim_blocks and lstrip_blocks on, as everybody renders chat templates. What is left
// out: inheritance, imports, recursive loops, autoescape, asynchronous calls, and the
// filters that make HTML. Generators are lists here, so that more is allowed: they have
// a length and can be indexed.
package template
