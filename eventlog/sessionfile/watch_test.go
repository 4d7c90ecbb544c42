package sessionfile_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
)

// What cannot be read is told of once, however often the folder is looked through.
func TestWatchTellsOnce(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "link.jsonl")); err != nil {
		t.Skip(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var told []string
	looks := 0
	touch := func() {
		looks++
		require.NoError(t, os.WriteFile(filepath.Join(dir, "x.jsonl"), make([]byte, looks), 0o600))
	}
	touch()
	err := sessionfile.Watch(ctx, []string{dir}, sessionfile.WatchOptions{NoEvents: true, Poll: time.Millisecond, Failed: func(path string, _ error) {
		told = append(told, filepath.Base(path))
	}}, func([]string) error {
		if looks == 5 {
			stop()
		}
		touch()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"link.jsonl"}, told)
}
