// Package layer holds the layers that networks are built of. A layer is a plain
// struct of tensors with a Forward method: made by its constructor, it registers
// its weights in a tree of parameters; made as a struct literal, it takes
// whatever tensors it is given, such as decoded weights of a file.
//
//	p := nn.NewParameters(g)
//	hidden := layer.NewLinear(p.In("hidden"), 784, 128)
//	out := layer.NewLinear(p.In("out"), 128, 10)
//	logits := out.Forward(hidden.Forward(x).Relu())
//
// Every Forward accepts leading axes beyond those it names. Wrong shapes are
// kept in the graph's error state, with the call site.
package layer
