package sqlitestore_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog/conformance"
)

// The README's program is, line by line and in order, part of the example that
// the tests run.
func TestTheReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, code, ok := strings.Cut(string(readme), "```go\n")
	require.True(t, ok, "the README has no Go code")
	code, _, ok = strings.Cut(code, "```")
	require.True(t, ok)
	var indented strings.Builder
	for line := range strings.Lines(code) {
		if strings.TrimSpace(line) != "" {
			indented.WriteByte('\t')
		}
		indented.WriteString(line)
	}
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	require.Contains(t, string(example), indented.String())
}

func TestTheReadmeHasEveryRule(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for _, rule := range conformance.Rules() {
		require.Contains(t, string(readme), "`"+string(rule)+"`")
	}
}
