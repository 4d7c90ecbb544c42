// Package sqlitestoretest opens stores for tests, and checks what every store
// owes its users when the test ends.
package sqlitestoretest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/sessiontree/sessiontree/sqlitestore"
)

// Open opens a store in a temporary folder. It does not wait for the disk unless
// o says so.
func Open(t testing.TB, o sqlitestore.Options) *sqlitestore.Store {
	t.Helper()
	return OpenAt(t, filepath.Join(t.TempDir(), "sessions.db"), o)
}

// OpenAt opens the store at path. When the test ends the store is verified, every
// view against a rebuild from nothing and against the reference walk, and closed.
func OpenAt(t testing.TB, path string, o sqlitestore.Options) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		problems, err := s.Verify(context.Background())
		if err != nil {
			t.Errorf("verify %s: %v", path, err)
		}
		for _, p := range problems {
			t.Errorf("verify %s: %s: %s", path, p.View, p.What)
		}
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close %s: %v", path, err)
		}
	})
	return s
}
