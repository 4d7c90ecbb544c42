// Package eventlog is the log of an AI agent's session, and the session over it.
//
// A session is a tree. Its entries are only ever appended; each names the one it
// was appended to; a movable leaf says where the next one attaches. The model
// sees the branch that leads to the leaf, cut at the last compaction.
//
// An [Entry] holds its JSON text as it came and answers from it. A [Storage]
// holds the entries of one session, a [Repo] many sessions; a [Session] is what
// a host works with, over any storage. Below it are the
// reference backends (memory and jsonl), the conformance suite that every backend
// must pass, and what they stand on (js, osfile).
//
// # Guarantees
//
//   - An append that fails leaves the session as it was, and what was appended is
//     never changed. (What a kill in the middle of a batch leaves, each backend
//     says.) What is returned are values: nothing a caller does to them reaches
//     the session.
//   - Appends to one session take turns, each below the leaf that the one before
//     left.
//   - Answers are those of Pi's agent core 0.83 (see [Harness]), save where
//     conformance.Rules has a rule.
//
// # Caveats
//
// Strings may hold lone surrogates, as JavaScript's may; see package js.
package eventlog
