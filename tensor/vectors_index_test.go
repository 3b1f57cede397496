package tensor_test

// indexOps are the rows of the group index.
var indexOps = map[string]opBuilder{}
