package backend

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // the driver that our store uses
)

// BareSQL is the limit of a store in SQLite: the same bytes through the same
// driver with the same pragmas, one row an entry, one insert a transaction, a
// branch as one scan of integer keys.
func BareSQL() Backend {
	return Backend{Name: "bare-sql", About: "the same bytes through bare SQL", Open: openBareSQL}
}

// bareSQL keeps entry n of session s at key s << 32 | n.
type bareSQL struct {
	path         string
	write, read  *sql.DB
	insert, scan *sql.Stmt
	create       *sql.Stmt

	mu       sync.Mutex
	sessions map[string]int64
	next     map[int64]int64 // the next free n
}

func openBareSQL(ctx context.Context, dir string, o Options) (_ Store, err error) {
	b := &bareSQL{path: filepath.Join(dir, "bare.db"), sessions: map[string]int64{}, next: map[int64]int64{}}
	synchronous := "full"
	if o.Normal {
		synchronous = "normal"
	}
	dsn := func(pragmas ...string) string {
		return (&url.URL{Scheme: "file", OmitHost: true, Path: b.path, RawQuery: url.Values{"_pragma": append(pragmas, "busy_timeout(10000)"), "_txlock": {"immediate"}}.Encode()}).String()
	}
	if b.write, err = sql.Open("sqlite", dsn("journal_mode(wal)", "synchronous("+synchronous+")")); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.Close(ctx)
		}
	}()
	b.write.SetMaxOpenConns(1)
	for _, statement := range []string{
		"CREATE TABLE IF NOT EXISTS sessions (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, header TEXT NOT NULL) STRICT",
		"CREATE TABLE IF NOT EXISTS entries (pos INTEGER PRIMARY KEY, payload TEXT NOT NULL) STRICT",
	} {
		if _, err := b.write.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	if b.read, err = sql.Open("sqlite", dsn()); err != nil {
		return nil, err
	}
	for _, s := range []struct {
		to   **sql.Stmt
		db   *sql.DB
		text string
	}{
		{&b.insert, b.write, "INSERT INTO entries (pos, payload) VALUES (?, ?)"},
		{&b.create, b.write, "INSERT INTO sessions (id, header) VALUES (?, ?)"},
		{&b.scan, b.read, "SELECT payload FROM entries WHERE pos BETWEEN ? AND ?"},
	} {
		if *s.to, err = s.db.PrepareContext(ctx, s.text); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *bareSQL) Do(ctx context.Context, r Request) (Reply, error) {
	switch r.Op {
	case Empty:
		return timed(func() (Reply, error) { return Reply{}, nil })
	case Create:
		return b.createSession(ctx, r)
	case List:
		return b.list(ctx)
	case Import:
		return b.importFile(ctx, r)
	case Leave:
		return Reply{}, nil // sessions are not open
	case Size:
		return databaseSize(ctx, b.path)
	case Peak:
		return peak()
	}
	key, err := b.key(ctx, r.Session)
	if err != nil {
		return Reply{}, err
	}
	switch r.Op {
	case Build, Batch:
		return b.build(ctx, key, r)
	case Append, AppendAt, Move:
		return b.append(ctx, key, r)
	case Branch, BranchPages, Context, Stream, Export:
		return b.branch(ctx, key, r.Op == Branch || r.Op == Context)
	case Fork:
		return b.fork(ctx, key, r)
	}
	return Reply{}, errors.ErrUnsupported
}

// header is as long as one of ours.
const header = `{"type":"session","version":3,"id":"0199aaaa-0000-7000-8000-000000000000","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/project"}`

func (b *bareSQL) createSession(ctx context.Context, r Request) (Reply, error) {
	return timed(func() (Reply, error) {
		_, err := b.create.ExecContext(ctx, r.Session, header)
		return Reply{Count: 1}, err
	})
}

func (b *bareSQL) key(ctx context.Context, id string) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if key, ok := b.sessions[id]; ok {
		return key, nil
	}
	var key, last int64
	if err := b.write.QueryRowContext(ctx, "SELECT key FROM sessions WHERE id = ?", id).Scan(&key); err != nil {
		return 0, fmt.Errorf("session %s: %w", id, err)
	}
	if err := b.write.QueryRowContext(ctx, "SELECT coalesce(max(pos), ?1) FROM entries WHERE pos BETWEEN ?1 AND ?2", key<<32, key<<32|0xffffffff).Scan(&last); err != nil {
		return 0, err
	}
	b.sessions[id], b.next[key] = key, last&0xffffffff+1
	return key, nil
}

// take gives the keys of n new entries.
func (b *bareSQL) take(key int64, n int) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	from := b.next[key]
	b.next[key] += int64(n)
	return key<<32 | from
}

func (b *bareSQL) build(ctx context.Context, key int64, r Request) (Reply, error) {
	lines := r.Lines
	if r.Op == Batch {
		lines = enveloped(lines)
	}
	from := b.take(key, len(lines))
	return timed(func() (Reply, error) {
		return Reply{Count: len(lines)}, b.insertAll(ctx, from, lines)
	})
}

// insertAll writes lines in one transaction.
func (b *bareSQL) insertAll(ctx context.Context, from int64, lines []string) error {
	tx, err := b.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	insert := tx.StmtContext(ctx, b.insert)
	for i, line := range lines {
		if _, err := insert.ExecContext(ctx, from+int64(i), line); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// enveloped puts messages into entries as long as ours.
func enveloped(messages []string) []string {
	lines := make([]string, len(messages))
	for i, m := range messages {
		lines[i] = `{"type":"message","id":"00000000","parentId":"00000000","timestamp":"2026-01-01T00:00:00.000Z","message":` + m + "}"
	}
	return lines
}

const leafLine = `{"type":"leaf","id":"00000000","parentId":"00000000","timestamp":"2026-01-01T00:00:00.000Z","targetId":"00000000"}`

// groupLimit is how many inserts of waiting writers go into one transaction.
const groupLimit = 64

func (b *bareSQL) append(ctx context.Context, key int64, r Request) (Reply, error) {
	lines := enveloped(r.Lines)
	if r.Op == Move {
		lines = []string{leafLine}
	}
	if r.Writers > 1 {
		return b.appendTogether(ctx, key, lines, r.Writers)
	}
	return each(len(lines), 1, func(i int) error {
		_, err := b.insert.ExecContext(ctx, b.take(key, 1), lines[i])
		return err
	})
}

// appendTogether commits what several writers want in as few transactions as
// possible: while one commits, the next group gathers.
func (b *bareSQL) appendTogether(ctx context.Context, key int64, lines []string, writers int) (Reply, error) {
	type request struct {
		line string
		done chan error
	}
	requests := make(chan request, writers)
	go func() {
		for first := range requests {
			group := []request{first}
			for more := true; more && len(group) < groupLimit; {
				select {
				case r, ok := <-requests:
					if more = ok; ok {
						group = append(group, r)
					}
				default:
					more = false
				}
			}
			texts := make([]string, len(group))
			for i, r := range group {
				texts[i] = r.line
			}
			err := b.insertAll(ctx, b.take(key, len(texts)), texts)
			for _, r := range group {
				r.done <- err
			}
		}
	}()
	defer close(requests)
	return each(len(lines), writers, func(i int) error {
		done := make(chan error, 1)
		requests <- request{lines[i], done}
		return <-done
	})
}

// branch reads all entries of a session, and keeps them if the answer is a list.
func (b *bareSQL) branch(ctx context.Context, key int64, keep bool) (Reply, error) {
	return timed(func() (r Reply, err error) {
		rows, err := b.scan.QueryContext(ctx, key<<32, key<<32|0xffffffff)
		if err != nil {
			return r, err
		}
		defer rows.Close()
		var texts []string
		var raw sql.RawBytes
		for rows.Next() {
			if err := rows.Scan(&raw); err != nil {
				return r, err
			}
			r.Count++
			r.Bytes += int64(len(raw))
			if keep {
				texts = append(texts, string(raw))
			}
		}
		runtime.KeepAlive(texts) // as a caller would hold the answer
		return r, rows.Err()
	})
}

func (b *bareSQL) fork(ctx context.Context, from int64, r Request) (Reply, error) {
	return timed(func() (Reply, error) {
		tx, err := b.write.BeginTx(ctx, nil)
		if err != nil {
			return Reply{}, err
		}
		defer tx.Rollback()
		made, err := tx.ExecContext(ctx, "INSERT INTO sessions (id, header) VALUES (?, ?)", r.NewSession, header)
		if err != nil {
			return Reply{}, err
		}
		to, err := made.LastInsertId()
		if err != nil {
			return Reply{}, err
		}
		copied, err := tx.ExecContext(ctx, "INSERT INTO entries (pos, payload) SELECT pos - ?1 + ?2, payload FROM entries WHERE pos BETWEEN ?1 AND ?1 + 0xffffffff", from<<32, to<<32)
		if err != nil {
			return Reply{}, err
		}
		n, err := copied.RowsAffected()
		if err != nil {
			return Reply{}, err
		}
		return Reply{Count: int(n)}, tx.Commit()
	})
}

// importFile reads the lines of a file and writes them in one transaction.
func (b *bareSQL) importFile(ctx context.Context, r Request) (Reply, error) {
	return timed(func() (Reply, error) {
		text, err := os.ReadFile(r.File)
		if err != nil {
			return Reply{}, err
		}
		made, err := b.create.ExecContext(ctx, filepath.Base(r.File), header)
		if err != nil {
			return Reply{}, err
		}
		key, err := made.LastInsertId()
		if err != nil {
			return Reply{}, err
		}
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[1:]
		return Reply{Count: len(lines)}, b.insertAll(ctx, key<<32, lines)
	})
}

func (b *bareSQL) list(ctx context.Context) (Reply, error) {
	return timed(func() (r Reply, err error) {
		rows, err := b.read.QueryContext(ctx, "SELECT id, header FROM sessions ORDER BY key DESC")
		if err != nil {
			return r, err
		}
		defer rows.Close()
		type listed struct{ id, header string }
		var all []listed
		for rows.Next() {
			var l listed
			if err := rows.Scan(&l.id, &l.header); err != nil {
				return r, err
			}
			all = append(all, l)
		}
		r.Count = len(all)
		return r, rows.Err()
	})
}

func (b *bareSQL) Close(context.Context) error {
	var errs []error
	for _, db := range []*sql.DB{b.read, b.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}
