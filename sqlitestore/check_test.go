package sqlitestore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// damaged is a closed database with two sessions, spoilt by statements that no
// program of ours would get through.
func damaged(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions.db")
	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{})
	require.NoError(t, err)
	for _, id := range []string{"a", "b"} {
		tree, err := s.Create(t.Context(), eventlog.CreateOptions{ID: id})
		require.NoError(t, err)
		for i := range 5 {
			_, err := tree.Append(t.Context(), eventlog.MessageDraft(benchMessage(i)).WithID(id+string(rune('1'+i))))
			require.NoError(t, err)
		}
	}
	require.NoError(t, s.Close(t.Context()))
	spoil(t, path, append([]string{"DROP TRIGGER events_are_never_changed", "DROP TRIGGER events_are_never_deleted"}, statements...)...)
	return path
}

func check(t *testing.T, path string) sqlitestore.Checked {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{ReadOnly: true})
	require.NoError(t, err)
	c, err := s.Check(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	return c
}

func TestCheckFindsDamageInTheLog(t *testing.T) {
	whole := sqlitestore.Checked{Sessions: 2, Events: 12}
	require.Equal(t, whole, check(t, damaged(t)))
	for name, test := range map[string]struct {
		spoil []string
		finds string
	}{
		"an event is gone":       {[]string{"DELETE FROM events WHERE id = 'a3'"}, "event 5 (session 1, n 4): n should be 3"},
		"an id was changed":      {[]string{"UPDATE events SET id = 'x' WHERE id = 'b2'"}, `event 9 (session 2, n 2): id is "'x'", in the payload "'b2'"`},
		"a parent was changed":   {[]string{"UPDATE events SET parent = NULL WHERE id = 'b2'"}, `event 9 (session 2, n 2): parent is "null", in the payload "'b1'"`},
		"a type was changed":     {[]string{"UPDATE events SET type = 'leaf' WHERE id = 'b2'"}, `event 9 (session 2, n 2): type is "leaf", in the payload "message"`},
		"a text was changed":     {[]string{"UPDATE events SET payload = replace(payload, 'a word', 'a sword') WHERE id = 'b2'"}, "event 9 (session 2, n 2): the hash is not that of the payload and the entry before"},
		"the payload is no JSON": {[]string{"UPDATE events SET payload = substr(payload, 1, 100) WHERE id = 'b2'"}, "the payload is not valid JSON: "},
		"a blob is gone":         {[]string{"UPDATE events SET payload = NULL, blob = 7 WHERE id = 'b2'"}, "event 9 (session 2, n 2): the hash is not that of the payload"},
		"a blob is nobody's":     {[]string{"INSERT INTO blobs (hash, text) VALUES (x'01', 'x')"}, "blob 1 belongs to no event"},
		"a session is gone":      {[]string{"DELETE FROM sessions WHERE id = 'b'"}, "the events of session 2 belong to no session"},
		"a beginning is gone":    {[]string{"DELETE FROM events WHERE session = 2 AND n = 0"}, "session 2 has no event of its creation"},
	} {
		t.Run(name, func(t *testing.T) {
			c := check(t, damaged(t, test.spoil...))
			var found []string
			for _, p := range c.Problems {
				if p.View == sqlitestore.InLog {
					found = append(found, p.What)
				}
			}
			require.NotEmpty(t, found)
			require.Contains(t, found[len(found)-1]+"\n"+found[0], test.finds)
		})
	}
}

// A page of the file is overwritten: the check finds it, goes on as far as it can,
// and does not fail.
func TestCheckOfADamagedFileSaysHowFarItCame(t *testing.T) {
	path := damaged(t)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	const pageSize = 4096
	found, unfinished := 0, 0
	for at := pageSize; at < len(data); at += pageSize {
		spoilt := append([]byte(nil), data...)
		for i := range pageSize {
			spoilt[at+i] ^= 0xa5
		}
		file := filepath.Join(t.TempDir(), "spoilt.db")
		require.NoError(t, os.WriteFile(file, spoilt, 0o600))
		s, err := sqlitestore.Open(t.Context(), file, sqlitestore.Options{ReadOnly: true})
		if err != nil {
			require.ErrorIs(t, err, eventlog.ErrStorage) // no schema is left
			continue
		}
		c, err := s.Check(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.Close(t.Context()))
		if len(c.Problems) > 0 {
			found++
		}
		if c.Unfinished != "" {
			unfinished++
		}
		require.True(t, len(c.Problems) > 0 || c.Unfinished != "", "page %d of %d", at/pageSize, len(data)/pageSize)
	}
	require.Positive(t, found)
	require.Positive(t, unfinished)
}

func TestRepairMendsWhatIsDerived(t *testing.T) {
	path := damaged(t, "DELETE FROM segments", "UPDATE heads SET n = 77", "DELETE FROM catalog",
		// An index that lacks a row.
		"PRAGMA writable_schema = 1",
		"UPDATE sqlite_schema SET sql = 'CREATE INDEX events_by_id ON events (session, id) WHERE session = 2' WHERE name = 'events_by_id'",
		"PRAGMA writable_schema = 0")
	spoil(t, path, "REINDEX events_by_id", "PRAGMA writable_schema = 1",
		"UPDATE sqlite_schema SET sql = 'CREATE INDEX events_by_id ON events (session, id)' WHERE name = 'events_by_id'")
	c := check(t, path)
	views := map[string]bool{}
	for _, p := range c.Problems {
		views[p.View] = true
	}
	require.True(t, views[sqlitestore.InFile], "%v", c.Problems)
	require.True(t, views["heads"], "%v", c.Problems)

	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Repair(t.Context()))
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, sqlitestore.Checked{Sessions: 2, Events: 12}, check(t, path))
}
