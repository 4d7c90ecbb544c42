package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
)

// A request that fails in a group takes back what it wrote, and no more; the
// others are committed together, in a second run of the group.
func TestAFailureInAGroupIsItsOwn(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, filepath.Join(t.TempDir(), "sessions.db"), Options{Synchronous: Normal})
	require.NoError(t, err)
	defer s.Close(ctx)
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "s", CWD: "/"})
	require.NoError(t, err)
	st := tree.Storage().(*Storage)

	s.views.Close(ctx) // they would write through the gate, which is not used below
	refused := errors.New("refused")
	runs, begun := 0, 0
	s.writer.bringUp = func(ctx context.Context, tx *projections.Tx) error {
		begun++
		return s.bringUp(ctx, tx)
	}
	var group []*request
	for i := range 9 {
		group = append(group, &request{ctx: ctx, views: true, run: func(ctx context.Context, tx *projections.Tx) error {
			runs++
			e, err := eventlog.ParseEntry(fmt.Sprintf(`{"type":"custom","id":"e%d","parentId":null,"timestamp":"t"}`, i))
			if err != nil {
				return err
			}
			if err := s.insertInto(ctx, tx, st.key, []eventlog.Entry{e}); err != nil {
				return err
			}
			switch i {
			case 3:
				return refused
			case 5:
				panic("of the host")
			}
			return nil
		}})
	}
	s.writer.commit(group, nil)
	require.Equal(t, 2, begun, "two transactions")
	require.Equal(t, 4+9, runs, "up to the first failure, and all")
	for i, r := range group {
		switch i {
		case 3:
			require.ErrorIs(t, r.err, refused)
		case 5:
			require.ErrorIs(t, r.err, eventlog.ErrStorage)
			require.Equal(t, "of the host", r.panicked)
		default:
			require.NoError(t, r.err)
		}
	}
	var ids []string
	for e, err := range tree.Entries(ctx, 0, eventlog.All) {
		require.NoError(t, err)
		ids = append(ids, e.ID())
	}
	require.Equal(t, []string{"e0", "e1", "e2", "e4", "e6", "e7", "e8"}, ids)
	problems, err := s.Verify(ctx)
	require.NoError(t, err)
	require.Empty(t, problems)
}
