package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
	"github.com/sessiontree/sessiontree/eventlog/memory"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// SQLite is this module's store.
func SQLite() Backend {
	return Backend{Name: "sqlite", About: "this module's store, one SQLite file", Limit: BareSQL().Name, Ours: true, Views: sqlitestore.ViewNames(), Open: openSQLite}
}

// InCodingAgent is how the names of backends end whose sessions have the coding
// agent's dialect.
const InCodingAgent = "-coding-agent"

// SQLiteCodingAgent is [SQLite] with sessions in the coding agent's dialect.
func SQLiteCodingAgent() Backend {
	b := SQLite()
	b.Name += InCodingAgent
	b.About += ", sessions in the coding agent's dialect"
	b.Open = func(ctx context.Context, dir string, o Options) (Store, error) {
		return openSQLiteIn(ctx, eventlog.CodingAgent, dir, o)
	}
	return b
}

// DatabaseName is the file of [SQLite] in its folder.
const DatabaseName = "sessions.db"

func openSQLite(ctx context.Context, dir string, o Options) (Store, error) {
	return openSQLiteIn(ctx, eventlog.Harness, dir, o)
}

func openSQLiteIn(ctx context.Context, dialect eventlog.Dialect, dir string, o Options) (Store, error) {
	path := filepath.Join(dir, DatabaseName)
	options := sqlitestore.Options{}
	if o.Normal {
		options.Synchronous = sqlitestore.Normal
	}
	store, err := sqlitestore.Open(ctx, path, options)
	if err != nil {
		return nil, err
	}
	a := &analyst{store: store, path: path}
	return &sessions{
		repo:    store,
		dialect: dialect,
		find:    byID,
		list:    func(ctx context.Context, limit int) (int, error) { return listPage(ctx, store, limit) },
		take:    func(ctx context.Context, file string) (int, error) { return importFile(ctx, store, file) },
		lag:     func(ctx context.Context) (int, error) { return lag(ctx, store) },
		rebuild: func(ctx context.Context, view string) error { return store.Rebuild(ctx, view) },
		size:    func(ctx context.Context) (Reply, error) { return databaseSize(ctx, path) },
		analyse: a.do,
		end:     func(ctx context.Context) error { return errors.Join(a.close(), store.Close(ctx)) },
		open:    map[string]*eventlog.Session{},
	}, nil
}

func importFile(ctx context.Context, store *sqlitestore.Store, file string) (n int, err error) {
	importErr := store.Import(ctx, []string{file}, sqlitestore.ImportOptions{}, func(r sqlitestore.FileResult) {
		n, err = r.Entries, r.Err
		if err == nil && r.Outcome != sqlitestore.Imported {
			err = fmt.Errorf("%s: %s", r.Path, r.Outcome)
		}
	})
	return n, cmp.Or(importErr, err)
}

// lag is how many events the view that is farthest behind lacks.
func lag(ctx context.Context, store *sqlitestore.Store) (int, error) {
	h, err := store.Health(ctx)
	most := int64(0)
	for _, v := range h.Views {
		most = max(most, v.Lag)
		err = cmp.Or(err, v.Err)
	}
	return int(most), err
}

func listPage(ctx context.Context, store *sqlitestore.Store, limit int) (n int, err error) {
	for _, err := range store.Sessions(ctx, sqlitestore.ListOptions{}) {
		if err != nil {
			return n, err
		}
		if n++; n == limit {
			break
		}
	}
	return n, nil
}

func byID(id string) (eventlog.Metadata, error) { return eventlog.Metadata{ID: id}, nil }

// JSONL is this module's backend over Pi's own files.
func JSONL() Backend {
	return Backend{Name: "jsonl", About: "this module over Pi's session files", Limit: BareFile().Name, Ours: true, Open: openJSONL}
}

func openJSONL(_ context.Context, dir string, o Options) (Store, error) {
	return &sessions{
		repo: jsonl.NewRepo(dir, jsonl.Options{NoSync: o.Normal}),
		find: func(id string) (eventlog.Metadata, error) { return findFile(dir, id) },
		size: func(context.Context) (Reply, error) { return folderSize(dir) },
		open: map[string]*eventlog.Session{},
	}, nil
}

// findFile finds the file of a session by its name.
func findFile(dir, id string) (eventlog.Metadata, error) {
	m := eventlog.Metadata{ID: id}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, "_"+id+".jsonl") {
			m.Path = path
			return fs.SkipAll
		}
		return err
	})
	if err == nil && m.Path == "" {
		err = eventlog.Errorf(eventlog.NotFound, "there is no file of session %s in %s", id, dir)
	}
	return m, err
}

func folderSize(dir string) (Reply, error) {
	var r Reply
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			r.Bytes += info.Size()
		}
		return err
	})
	return r, err
}

// Memory is this module's backend without a disk.
func Memory() Backend {
	return Backend{Name: "memory", About: "this module, nothing on disk", Memory: true, Ours: true, Open: func(context.Context, string, Options) (Store, error) {
		return &sessions{repo: memory.NewRepo(eventlog.Source{}), find: byID, open: map[string]*eventlog.Session{}}, nil
	}}
}
