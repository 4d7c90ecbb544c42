package projections_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/sessiontree/sessiontree/migrations"
	"github.com/sessiontree/sessiontree/projections"
)

// host is the smallest store: one connection, one transaction at a time.
type host struct {
	mu   sync.Mutex
	tx   *projections.Tx
	news chan struct{}
}

func newHost(t *testing.T) *host {
	t.Helper()
	db, err := sqlx.Open("sqlite", filepath.Join(t.TempDir(), "log.db"))
	require.NoError(t, err)
	provider, err := goose.NewProvider(goose.DialectSQLite3, db.DB, migrations.FS)
	require.NoError(t, err)
	_, err = provider.Up(t.Context())
	require.NoError(t, err)
	_, err = db.Exec("CREATE TABLE seen (view TEXT, seq INTEGER)")
	require.NoError(t, err)
	conn, err := db.Connx(t.Context())
	require.NoError(t, err)
	h := &host{tx: projections.NewTx(conn), news: make(chan struct{})}
	t.Cleanup(func() {
		require.NoError(t, h.tx.CloseConn())
		require.NoError(t, db.Close())
	})
	return h
}

func (h *host) Read(ctx context.Context, f func(tx *projections.Tx) error) error {
	return h.Update(ctx, func(_ context.Context, tx *projections.Tx) error { return f(tx) })
}

func (h *host) Update(ctx context.Context, f func(ctx context.Context, tx *projections.Tx) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := h.tx.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	err := f(ctx, h.tx)
	end := "COMMIT"
	if err != nil {
		end = "ROLLBACK"
	}
	_, endErr := h.tx.Exec(context.WithoutCancel(ctx), end)
	return errors.Join(err, endErr)
}

func (h *host) Appended() <-chan struct{} { return h.news }

// append adds n entries to session 1.
func (h *host) append(t *testing.T, n int) {
	t.Helper()
	require.NoError(t, h.Update(t.Context(), func(ctx context.Context, tx *projections.Tx) error {
		last, err := projections.LastEvent(ctx, tx)
		for i := range n {
			if err != nil {
				return err
			}
			id := fmt.Sprint("e", last+int64(i)+1)
			_, err = tx.Exec(ctx, "INSERT INTO events (session, n, id, type, timestamp, payload) VALUES (1, ?, ?, 'custom', '', ?)",
				last+int64(i)+1, id, fmt.Sprintf(`{"type":"custom","id":%q,"parentId":null,"timestamp":""}`, id))
		}
		return err
	}))
}

func (h *host) seen(t *testing.T, view string) (seqs []int64) {
	t.Helper()
	require.NoError(t, h.Read(t.Context(), func(tx *projections.Tx) error {
		rows, err := tx.Rows(t.Context(), "SELECT seq FROM seen WHERE view = ? ORDER BY rowid", view)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var seq int64
			if err := rows.Scan(&seq); err != nil {
				return err
			}
			seqs = append(seqs, seq)
		}
		return rows.Err()
	}))
	return seqs
}

func (h *host) health(t *testing.T, r *projections.Runner) (all []projections.Health) {
	t.Helper()
	require.NoError(t, h.Read(t.Context(), func(tx *projections.Tx) (err error) {
		all, err = r.Health(t.Context(), tx)
		return err
	}))
	return all
}

// noting writes down each event that it is given, then does what poison says.
type noting struct {
	name    string
	version int
	poison  func(seq int64) error
}

func (n *noting) Name() string { return n.name }
func (n *noting) Version() int { return max(n.version, 1) }
func (n *noting) Apply(ctx context.Context, tx *projections.Tx, events []projections.Event) error {
	for _, e := range events {
		if _, err := tx.Exec(ctx, "INSERT INTO seen VALUES (?, ?)", n.name, e.Seq); err != nil {
			return err
		}
		if n.poison == nil {
			continue
		}
		if err := n.poison(e.Seq); err != nil {
			return err
		}
	}
	return nil
}
func (n *noting) Tables() []string { return []string{"seen"} }

func (n *noting) Reset(ctx context.Context, tx *projections.Tx) error {
	_, err := tx.Exec(ctx, "DELETE FROM seen WHERE view = ?", n.name)
	return err
}

func upTo(n int64) (seqs []int64) {
	for i := range n {
		seqs = append(seqs, i+1)
	}
	return seqs
}

var silent = slog.New(slog.DiscardHandler)

// One entry that a view cannot take stops that view alone, by an error or by a
// panic: what it wrote for it is undone with its position, the others go on, and
// it goes on too when it can.
func TestReport_I7_I8_APoisonEntryStopsOneView(t *testing.T) {
	h := newHost(t)
	var mu sync.Mutex
	healed := false
	poisoned := func(fail func() error) func(seq int64) error {
		return func(seq int64) error {
			mu.Lock()
			defer mu.Unlock()
			if seq == 700 && !healed {
				return fail()
			}
			return nil
		}
	}
	r := projections.NewRunner(h, silent,
		&noting{name: "errs", poison: poisoned(func() error { return errors.New("entry 700 is poison") })},
		&noting{name: "panics", poison: poisoned(func() error { panic("at entry 700") })},
		&noting{name: "works"})
	r.Start()
	h.append(t, 1200)
	require.Eventually(t, func() bool {
		all := h.health(t, r)
		return all[0].Err != nil && all[1].Err != nil && all[2].Position == 1200
	}, 20*time.Second, 10*time.Millisecond)

	all := h.health(t, r)
	require.ErrorContains(t, all[0].Err, "entry 700 is poison")
	require.ErrorContains(t, all[1].Err, "panic: at entry 700")
	for i, seen := range map[int]int64{0: 500, 1: 500, 2: 1200} {
		require.Equal(t, upTo(seen), h.seen(t, all[i].Name), "whole slices, nothing of the failed one")
		require.Equal(t, seen, all[i].Position)
		require.Equal(t, 1200-seen, all[i].Lag)
	}
	require.ErrorContains(t, r.CatchUp(t.Context(), "errs"), "view errs: entry 700 is poison")

	mu.Lock()
	healed = true
	mu.Unlock()
	require.NoError(t, r.CatchUpAll(t.Context()))
	r.Close(t.Context())
	for _, name := range []string{"errs", "panics", "works"} {
		require.Equal(t, upTo(1200), h.seen(t, name))
	}
	for _, v := range h.health(t, r) {
		require.Equal(t, projections.Health{Name: v.Name, Version: 1, Position: 1200}, v)
	}
}

// The lag is counted from the log's end, whoever is or is not at work.
func TestReport_I5_LagIsAgainstTheLog(t *testing.T) {
	h := newHost(t)
	r := projections.NewRunner(h, silent, &noting{name: "idle"})
	h.append(t, 30)
	require.Equal(t, []projections.Health{{Name: "idle", Lag: 30}}, h.health(t, r))
	require.NoError(t, r.CatchUp(t.Context(), "idle"))
	h.append(t, 3)
	require.Equal(t, []projections.Health{{Name: "idle", Version: 1, Position: 30, Lag: 3}}, h.health(t, r))
}

// A write that was rolled back leaves no seq that a view could wait for.
func TestReport_I4_ARolledBackWriteLeavesNoGap(t *testing.T) {
	h := newHost(t)
	h.append(t, 2)
	undo := errors.New("undo")
	err := h.Update(t.Context(), func(ctx context.Context, tx *projections.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO events (session, n, id, type, timestamp, payload) VALUES (1, 3, 'x', 'custom', '', '{}')")
		return errors.Join(err, undo)
	})
	require.ErrorIs(t, err, undo)
	h.append(t, 2)
	r := projections.NewRunner(h, silent, &noting{name: "view"})
	require.NoError(t, r.CatchUp(t.Context(), "view"))
	require.Equal(t, upTo(4), h.seen(t, "view"))
}

func TestVersionsOnlyRise(t *testing.T) {
	h := newHost(t)
	h.append(t, 10)
	require.NoError(t, projections.NewRunner(h, silent, &noting{name: "view", version: 2}).CatchUpAll(t.Context()))
	older := projections.NewRunner(h, silent, &noting{name: "view", version: 1})
	require.ErrorContains(t, older.CatchUpAll(t.Context()), "the view view is of version 2, and this program writes version 1: use the newer program")
	require.Error(t, h.health(t, older)[0].Err)
	h.append(t, 1)
	newer := projections.NewRunner(h, silent, &noting{name: "view", version: 3})
	require.NoError(t, newer.CatchUpAll(t.Context()))
	require.Equal(t, upTo(11), h.seen(t, "view"), "made again from the first event")

	// A position beyond the log cannot be right.
	require.NoError(t, h.Update(t.Context(), func(ctx context.Context, tx *projections.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE checkpoints SET position = 99")
		return err
	}))
	require.NoError(t, newer.CatchUpAll(t.Context()))
	require.Equal(t, upTo(11), h.seen(t, "view"))
	require.Equal(t, projections.Health{Name: "view", Version: 3, Position: 11}, h.health(t, newer)[0])

	require.NoError(t, newer.Rebuild(t.Context()))
	require.Equal(t, upTo(11), h.seen(t, "view"))
}

// pacing is a view that works ahead so many times before it takes events, each time in a
// transaction that commits.
type pacing struct {
	noting
	steps, asked int
}

func (p *pacing) Pace(ctx context.Context, tx *projections.Tx, _ []projections.Event) (ready bool, err error) {
	p.asked++
	if p.steps--; p.steps < 0 {
		return true, nil
	}
	_, err = tx.Exec(ctx, "INSERT INTO seen VALUES ('steps', ?)", p.asked)
	return false, err
}

// A view that works ahead keeps its steps, takes no event before the last, and takes it
// once; one that would never come to an end takes it all the same.
func TestAViewWorksAhead(t *testing.T) {
	h := newHost(t)
	h.append(t, 1)
	few := &pacing{noting: noting{name: "few"}, steps: 5}
	endless := &pacing{noting: noting{name: "endless"}, steps: 1 << 40}
	r := projections.NewRunner(h, silent, few, endless)
	require.NoError(t, r.CatchUp(t.Context(), "few"))
	require.Equal(t, []int64{1, 2, 3, 4, 5}, h.seen(t, "steps"))
	require.Equal(t, []int64{1}, h.seen(t, "few"))
	require.NoError(t, r.CatchUp(t.Context(), "endless"))
	require.Equal(t, []int64{1}, h.seen(t, "endless"))
	require.Len(t, h.seen(t, "steps"), 5+endless.asked)
}
