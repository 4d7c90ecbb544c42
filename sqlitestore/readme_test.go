package sqlitestore_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README's program is the example that the tests run.
func TestTheReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, code, ok := strings.Cut(string(readme), "```go\n")
	require.True(t, ok, "the README has no Go code")
	code, _, ok = strings.Cut(code, "```")
	require.True(t, ok)
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	for line := range strings.Lines(code) {
		if strings.TrimSpace(line) != "" {
			line = "\t" + line
		}
		require.Contains(t, string(example), line)
	}
}
