package jsonl

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sessiontree/sessiontree/eventlog"
)

// PiDir is the folder that Pi keeps the sessions of a working folder in. Folders
// such as /a/b and /a-b share one.
func PiDir(cwd string) string {
	if cwd != "" && (cwd[0] == '/' || cwd[0] == '\\') {
		cwd = cwd[1:]
	}
	return "--" + strings.NewReplacer("/", "-", "\\", "-", ":", "-").Replace(cwd) + "--"
}

// PiFileName is the name that Pi gives to a session's file. An id with slashes
// leads out of the folder.
func PiFileName(createdAt, id string) string {
	return stamp(createdAt) + "_" + id + ".jsonl"
}

func stamp(createdAt string) string {
	return strings.NewReplacer(":", "-", ".", "-").Replace(createdAt)
}

// longest is how many bytes of a name are kept before a hash takes the place of
// the rest. File systems allow 255.
const longest = 180

// dirName is the folder for a working folder: Pi's, where that is one to one.
// What Pi folds together is escaped as %XX: "-" itself, ":", "\", and all that
// some file system does not take; a path that does not start with "/" gets a
// mark of its own.
func dirName(cwd string) string {
	mark := "%_"
	rest := cwd
	if strings.HasPrefix(cwd, "/") {
		mark, rest = "", cwd[1:]
	}
	var b strings.Builder
	for i, part := range strings.Split(rest, "/") {
		if i > 0 {
			b.WriteByte('-')
		}
		b.WriteString(escape(part, `-:\*?"<>|%`, true))
	}
	return "--" + shorten(mark+b.String(), cwd) + "--"
}

// fileName is the name for a session's file: Pi's, with all but plain letters,
// digits, dots, dashes and underscores of the id escaped as %XX.
func fileName(createdAt, id string) string {
	return stamp(createdAt) + "_" + encodeID(id) + ".jsonl"
}

func encodeID(id string) string {
	return shorten(escape(id, notInNames, false), id)
}

// notInNames is what a file's name does not hold as it is.
const notInNames = "/:\\*?\"<>|% ,;'`$&()[]{}!#~^=+@"

// escape writes bytes of s that are in special, controls, and what is not UTF-8
// as %XX; all that is not ASCII too, unless letters may stay.
func escape(s, special string, letters bool) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		plain := r >= 0x20 && r != 0x7F && strings.IndexByte(special, s[i]) < 0
		if n > 1 || r == utf8.RuneError {
			plain = letters && n > 1
		}
		for _, c := range []byte(s[i : i+n]) {
			if plain {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		}
		i += n
	}
	return b.String()
}

// shorten keeps names below what file systems allow; the hash of the whole keeps
// them apart.
func shorten(name, of string) string {
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(of))
	cut := longest - 34
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + "%~" + hex.EncodeToString(sum[:16])
}

// PiPath is where Pi keeps a session's file below its folder of sessions: its own
// names, so that it finds the file again. What would lead out of the folder, or is
// no name on some file system, is escaped.
func PiPath(m eventlog.Metadata) (dir, name string) {
	dir, name = PiDir(m.CWD), PiFileName(m.CreatedAt, m.ID)
	if escape(dir, `/:\*?"<>|%`, true) != dir || len(dir) > longest {
		dir = dirName(m.CWD)
	}
	if encodeID(name) != name {
		name = shorten(escape(stamp(m.CreatedAt), notInNames, false), m.CreatedAt) + "_" + encodeID(m.ID) + ".jsonl"
	}
	return dir, name
}
