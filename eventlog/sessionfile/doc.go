// Package sessionfile reads session files of every format that Pi and its kin
// have written, as a stream, and says what it takes to write the same bytes again.
//
// # Formats
//
//   - Version 1: no ids; the entries are a chain. A compaction's
//     firstKeptEntryIndex counts the records of the file, the header being 0.
//   - Version 2: the role hookMessage is what is custom today.
//   - Version 3, and any later one that begins with a header of type session:
//     entries as package eventlog has them, a line each. oh-my-pi puts a line of
//     type title before the header.
//   - Version 4 of Pi's newer harness (agent core 0.84 to 0.87): a header of kind
//     "header", then a transaction a line, an object or a list of them.
//
// Versions 1 and 2 are brought to version 3 as package older says. Of version 4, an
// entry becomes one of version 3 (its time is a number there); the name, labels and
// the tip of the main branch, which it keeps apart as values, become session_info,
// label and leaf entries. Its other values (usage rows, the state of operations,
// lanes) have no place in a tree: they are kept as bytes of the file.
//
// # Bytes
//
// A file is its header and its entries, in their order, with gaps between them. A
// gap is a newline, as a rule; all else that may stand there (a carriage return,
// blank lines, a byte order mark, bytes that cannot be read) is handed out with
// the item that it stands before. Where the text of an entry is not what the file
// has, [Edits] lead back to it. So gaps, texts and edits give the file, byte for
// byte.
//
// # Memory
//
// A [Reader] holds one line, and a gap up to a megabyte; a longer gap, and a line
// beyond the limit, are handed out in parts.
package sessionfile
