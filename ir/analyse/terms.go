package analyse

// HalfTermScale is what the second of an f32's two terms of f16 is taken times where the other factor is an f16, too: one that is less
// than 2^-8 loses bits by that, at most 2^-25, so that a product loses at most 2^-30 of the f32: 2^-24 of products with numbers of 1/64, as
// much as an f32 rounds by. The term loses at most 2^-25 times that, or 2^-45 of its row's largest. Integers take 2^-11.
const HalfTermScale = 1.0 / (1 << 6)
