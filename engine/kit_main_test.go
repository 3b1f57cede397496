package engine_test

import _ "tgc/internal/rarecollection" // these tests make much garbage
