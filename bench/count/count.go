// Package count counts what SQLite does for a program: pages asked for, pages
// written, rows changed. Such counts are the same on every machine, however busy
// it is; times are not.
//
// It looks at the connections of the driver modernc.org/sqlite, whoever opens
// them, as of their opening.
package count

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strings"
	"sync"

	"modernc.org/sqlite"
)

// Counter counts for the database of one path.
type Counter struct {
	path string

	mu    sync.Mutex
	pages int64
	rows  map[string]int64
}

// Counts are sums since the counter began.
type Counts struct {
	// Pages is how many pages transactions asked for, whether SQLite had them in
	// memory or not. What a commit itself needs counts with the next transaction of
	// the connection; reads outside of a transaction count with it too.
	Pages int64
	// Frames is how many pages the write-ahead log holds. It starts again when the
	// log does.
	Frames int64
	// Rows is how many rows of each table were inserted, updated or deleted.
	Rows map[string]int64
}

var watched struct {
	once     sync.Once
	mu       sync.Mutex
	counters map[*Counter]bool
}

// Watch begins to count for the database at path, which is absolute, with
// symbolic links followed. Connections that are open already do not count.
func Watch(path string) *Counter {
	watched.once.Do(func() {
		watched.counters = map[*Counter]bool{}
		sqlite.RegisterConnectionHook(attach)
	})
	c := &Counter{path: path, rows: map[string]int64{}}
	watched.mu.Lock()
	defer watched.mu.Unlock()
	watched.counters[c] = true
	return c
}

// Close ends the counting on connections to come.
func (c *Counter) Close() {
	watched.mu.Lock()
	defer watched.mu.Unlock()
	delete(watched.counters, c)
}

// attach is called for every connection that is opened.
func attach(conn sqlite.ExecQuerierContext, dsn string) error {
	watched.mu.Lock()
	defer watched.mu.Unlock()
	for c := range watched.counters {
		if names(dsn, c.path) {
			return c.follow(conn)
		}
	}
	return nil
}

// names says whether a data source name, a path or a URI, is of a file.
func names(dsn, path string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(dsn, "file:"), "?")
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	return name == path || strings.TrimPrefix(name, "//") == path
}

// follow counts on a connection. The hooks run in the goroutine that uses the
// connection, so that asking it there for its status disturbs nobody.
func (c *Counter) follow(conn any) error {
	hooks, ok := conn.(sqlite.HookRegisterer)
	status, ok2 := conn.(sqlite.DBStatus)
	if !ok || !ok2 {
		return errors.New("the SQLite driver does not tell what it does")
	}
	var last int64
	end := func() {
		var pages int64
		for _, op := range []sqlite.DBStatusOp{sqlite.DBStatusCacheHit, sqlite.DBStatusCacheMiss} {
			n, _, err := status.Status(op, false)
			if err != nil {
				return // it can only refuse an operation that it does not know
			}
			pages += int64(n)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pages += pages - last
		last = pages
	}
	hooks.RegisterCommitHook(func() int32 { end(); return 0 })
	hooks.RegisterRollbackHook(end)
	hooks.RegisterPreUpdateHook(func(d sqlite.SQLitePreUpdateData) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.rows[d.TableName]++
	})
	return nil
}

// Now gives the counts.
func (c *Counter) Now() (Counts, error) {
	frames, err := frames(c.path)
	c.mu.Lock()
	defer c.mu.Unlock()
	return Counts{Pages: c.pages, Frames: frames, Rows: maps.Clone(c.rows)}, err
}

// Where the index of a write-ahead log, a file that its processes share, holds
// the number of valid frames: https://www.sqlite.org/walformat.html, section 2.1.
const (
	frameOffset = 16
	headerSize  = 48
)

func frames(path string) (int64, error) {
	index, err := os.Open(path + "-shm")
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer index.Close()
	header := make([]byte, headerSize)
	if _, err := index.ReadAt(header, 0); err != nil {
		return 0, fmt.Errorf("cannot read the index of the write-ahead log of %s: %w", path, err)
	}
	return int64(binary.NativeEndian.Uint32(header[frameOffset:])), nil
}

// Since gives what was counted after an earlier moment.
func (c Counts) Since(earlier Counts) Counts {
	d := Counts{Pages: c.Pages - earlier.Pages, Frames: c.Frames - earlier.Frames, Rows: map[string]int64{}}
	if d.Frames < 0 {
		d.Frames = c.Frames // the log has started again
	}
	for table, n := range c.Rows {
		if n -= earlier.Rows[table]; n != 0 {
			d.Rows[table] = n
		}
	}
	return d
}
