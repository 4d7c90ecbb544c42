// Package js holds the JavaScript rules that Pi's answers rest on: JSON text
// that is read in place and never rewritten, strings counted in UTF-16 code
// units, numbers as JSON.stringify writes them, dates as V8 reads them.
//
// Session files are written and read by JavaScript programs, so "the same
// answer" means the same as JSON.parse, String.prototype.trim or new Date would
// give. encoding/json is not enough: it turns a lone surrogate into U+FFFD
// without an error, matches keys without regard to case, and loses the form of
// a number.
//
// # Strings
//
// A JavaScript string may hold half of a surrogate pair. Here such a string is
// a Go string in WTF-8: each lone surrogate is the three bytes that UTF-8 would
// use for its code point; a whole pair is always one four-byte sequence.
//
// # Values
//
// A [Value] is JSON text that [Parse] has checked. Reading a field costs a scan
// of the text and no allocation; what is not asked for is not decoded. Nothing
// here recurses on its input, so depth costs memory in proportion and never
// stack.
package js
