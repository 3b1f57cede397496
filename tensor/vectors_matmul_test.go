package tensor_test

// matmulOps are the rows of the group matmul.
var matmulOps = map[string]opBuilder{}
