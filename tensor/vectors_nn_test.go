package tensor_test

// nnOps are the rows of the group nn.
var nnOps = map[string]opBuilder{}
