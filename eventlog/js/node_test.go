package js

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// The tables in testdata are answers of Node itself; these helpers read them.

// nodeTable returns the rows of a table, split at their tabs.
func nodeTable(t testing.TB, name string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows [][]string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if line := lines.Text(); !strings.HasPrefix(line, "#") {
			rows = append(rows, strings.Split(line, "\t"))
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no rows", name)
	}
	return rows
}

func unquoted(t testing.TB, quoted string) string {
	t.Helper()
	s, err := strconv.Unquote(quoted)
	if err != nil {
		t.Fatalf("%s: %v", quoted, err)
	}
	return s
}

func integer(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// toUnits and fromUnits are UTF-16 done the plain way, to hold the package's
// functions against.
func toUnits(s string) []uint16 {
	var units []uint16
	for s != "" {
		if len(s) >= 3 && s[0] == 0xED && s[1] >= 0xA0 {
			units = append(units, 0xD000|uint16(s[1]&0x3F)<<6|uint16(s[2]&0x3F))
			s = s[3:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		units = utf16.AppendRune(units, r)
		s = s[n:]
	}
	return units
}

func fromUnits(units []uint16) string {
	var b []byte
	for i := 0; i < len(units); i++ {
		u := rune(units[i])
		switch {
		case u < 0xD800 || u > 0xDFFF:
			b = utf8.AppendRune(b, u)
		case i+1 < len(units) && utf16.DecodeRune(u, rune(units[i+1])) != utf8.RuneError:
			b = utf8.AppendRune(b, utf16.DecodeRune(u, rune(units[i+1])))
			i++
		default:
			b = append(b, 0xED, byte(0x80|u>>6&0x3F), byte(0x80|u&0x3F))
		}
	}
	return string(b)
}
