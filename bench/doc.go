// Package bench measures stores of session trees: how long each operation takes
// in trees of many shapes and sizes, beside what is possible (the same bytes
// through bare SQL or a bare file) and beside other stores, and how the cost
// grows.
//
// [Run] carries a [Config] out and gives a [Result]; the packages below it draw
// trees (shape), drive stores (backend), estimate (stats) and show (report).
//
// # How it measures
//
//   - A tree is drawn from a seed, so that two runs ask for the same bytes.
//   - A store and its limit take turns, operation by operation, in one process;
//     who begins changes each time. A figure is the median of the ratios of such
//     pairs, with its interval: what disturbs both falls out.
//   - Each store takes its time itself, around the one call. The operation empty
//     shows what that costs: it is part of every figure.
//   - All samples are kept. A figure whose interval reaches farther than a tenth
//     to either side is marked as unsure.
package bench
