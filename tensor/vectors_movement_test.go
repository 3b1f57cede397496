package tensor_test

// movementOps are the rows of the group movement.
var movementOps = map[string]opBuilder{}
