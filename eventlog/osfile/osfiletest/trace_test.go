package osfiletest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func hexed(s string) string {
	out := ""
	for _, b := range []byte(s) {
		out += `\x` + string("0123456789abcdef"[b>>4]) + string("0123456789abcdef"[b&15])
	}
	return out
}

// TestACallThatTheEndOfItsProcessCutsOffIsNone holds the lines that strace writes
// of threads that a process's end kills between two of its looks.
func TestACallThatTheEndOfItsProcessCutsOffIsNone(t *testing.T) {
	p := tracer{dir: "/d", sizes: map[string]int64{}, places: map[string]int64{}, open: map[string]start{}}
	file := "5<" + hexed("/d/a") + ">"
	for _, line := range []string{
		`11 openat(AT_FDCWD<` + hexed("/") + `>, "` + hexed("/d/a") + `", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = ` + file,
		`11 pwrite64(` + file + `, "` + hexed("ab") + `", 2, 0 <unfinished ...>`,
		`12 ???( <detached ...>`,
		`13 ??? ( <unfinished ...>`,
		`11 <... pwrite64 resumed>)                 = 2`,
		`14 fsync(` + file + ` <unfinished ...>`,
		`14 <... fsync resumed> <detached ...>`,
		`15 pwrite64(` + file + `, "` + hexed("cd") + `", 2, 2 <detached ...>`,
		`16 fsync(` + file + `)      = ?`,
		`11 +++ exited with 0 +++`,
	} {
		require.NoError(t, p.line(line), line)
	}
	require.Equal(t, []Op{
		{Kind: Create, Path: "a"},
		{Kind: Write, Path: "a", Data: []byte("ab")},
	}, p.ops)
	require.Empty(t, p.open)
}
