package sqlitestore

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/osfile"
	"github.com/sessiontree/sessiontree/projections"
)

// BackupInfo is what a backup holds.
type BackupInfo struct {
	Bytes     int64 // size of the file
	LastEvent int64 // seq of the last event in it, 0 for none
}

// Backup writes a copy of the database into a new file, as it is at one moment,
// while others read and write. The copy is a database of its own, without unused
// space, and can be opened like any; to restore it, put it in the place of the
// other while no program has that open. It is checked by SQLite before it gets its
// name, readable by its owner only, and on disk when Backup returns.
//
// It fails with [eventlog.ErrAlreadyExists] when there is a file at path, which
// stays as it is.
func (s *Store) Backup(ctx context.Context, path string) (info BackupInfo, err error) {
	if _, err := os.Lstat(path); err == nil {
		return info, eventlog.Errorf(eventlog.AlreadyExists, "%s exists already: a backup replaces no file", path)
	}
	dir := filepath.Dir(path)
	made, err := os.CreateTemp(dir, ".sessiontree-backup-*") // 0600
	if err != nil {
		return info, fileError(path, "cannot make a backup", err)
	}
	temp := made.Name()
	defer os.Remove(temp)
	if err := made.Close(); err != nil {
		return info, fileError(path, "cannot make a backup", err)
	}
	if err := s.copyInto(ctx, temp); err != nil {
		return info, err
	}
	if info, err = s.checkBackup(ctx, temp); err != nil {
		return BackupInfo{}, err
	}
	if err := publish(temp, path); err != nil {
		return BackupInfo{}, err
	}
	return info, nil
}

// copyInto fills an empty file with the database.
func (s *Store) copyInto(ctx context.Context, path string) error {
	return s.withReader(ctx, func(tx *projections.Tx) (broken bool, err error) {
		// Writing another file is more than query_only allows; this one stays as it
		// was opened, for reading.
		if _, err := tx.Exec(ctx, "PRAGMA query_only = 0"); err != nil {
			return true, err
		}
		// SQLite takes an empty file for one that is not there, and keeps its mode.
		_, err = tx.Exec(ctx, "VACUUM INTO ?", path)
		_, reset := tx.Exec(context.WithoutCancel(ctx), "PRAGMA query_only = 1")
		return reset != nil, s.db.mapError("cannot copy", err)
	})
}

// checkBackup opens a copy as any reader would.
func (s *Store) checkBackup(ctx context.Context, path string) (info BackupInfo, err error) {
	copied := &database{path: path, o: s.db.o, readOnly: true}
	defer copied.close()
	copied.openRead(url.Values{"mode": {"ro"}, "immutable": {"1"}})
	conn, err := copied.read.Connx(ctx)
	if err != nil {
		return info, copied.mapError("cannot read the backup", err)
	}
	tx := projections.NewTx(conn)
	defer tx.CloseConn()
	if err := integrity(ctx, tx); err != nil {
		return info, copied.mapError("the backup is no good", err)
	}
	if info.LastEvent, err = projections.LastEvent(ctx, tx); err != nil {
		return info, copied.mapError("cannot read the backup", err)
	}
	file, err := os.Stat(path)
	if err != nil {
		return info, fileError(path, "cannot read the backup", err)
	}
	info.Bytes = file.Size()
	return info, nil
}

// integrity is SQLite's own check of the file.
func integrity(ctx context.Context, tx *projections.Tx) error {
	var result string
	if _, err := tx.Row(ctx, "PRAGMA integrity_check(1)", nil, &result); err != nil {
		return err
	}
	if result != "ok" {
		return eventlog.Errorf(eventlog.StorageFailed, "the integrity check says: %s", result)
	}
	return nil
}

// publish gives a finished file its name, durably, and never takes another's.
func publish(temp, path string) error {
	const what = "cannot make a backup"
	f, err := os.OpenFile(temp, os.O_RDWR, 0)
	if err != nil {
		return fileError(path, what, err)
	}
	err = errors.Join(f.Sync(), f.Close())
	if err != nil {
		return fileError(path, what, err)
	}
	err = os.Link(temp, path)
	switch {
	case errors.Is(err, fs.ErrExist):
		return eventlog.Errorf(eventlog.AlreadyExists, "%s exists already: a backup replaces no file", path)
	case err != nil: // a file system without links
		err = os.Rename(temp, path)
	}
	if err != nil {
		return fileError(path, what, err)
	}
	if err := osfile.SyncDir(filepath.Dir(path)); err != nil {
		return fileError(path, what, err)
	}
	return nil
}

// Compacted is what [Store.Compact] did, in bytes.
type Compacted struct{ Before, After int64 }

// Compact gives the space that deleted sessions left back to the file system: the
// database is written anew, without gaps, and the write-ahead log is emptied. It
// needs about twice the database's size in free space while it runs, and writers
// wait. It fails with [eventlog.ErrBusy] while another process writes, or reads
// for as long as the context or [Options.BusyTimeout] allows.
func (s *Store) Compact(ctx context.Context) (c Compacted, err error) {
	if s.writer == nil {
		return c, s.readOnly()
	}
	if c.Before, err = s.db.bytes(); err != nil {
		return c, err
	}
	err = s.writer.exclusively(ctx, func(ctx context.Context, tx *projections.Tx) error {
		_, err := tx.Exec(ctx, "VACUUM")
		return err
	})
	if err == nil {
		err = s.emptyWAL(ctx)
	}
	after, sizeErr := s.db.bytes()
	c.After = after
	return c, cmp.Or(err, sizeErr)
}

// emptyWAL copies all of the write-ahead log into the database and cuts it, once
// those have ended who read from it: a view of this process among them. While it waits
// for them others write.
func (s *Store) emptyWAL(ctx context.Context) error {
	for deadline := time.Now().Add(s.o.BusyTimeout); ; {
		var busy, log, moved int
		err := s.writer.exclusively(ctx, func(ctx context.Context, tx *projections.Tx) error {
			_, err := tx.Row(ctx, "PRAGMA wal_checkpoint(TRUNCATE)", nil, &busy, &log, &moved)
			return err
		})
		if err != nil || busy == 0 {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
		if _, bounded := ctx.Deadline(); ctx.Err() != nil || !bounded && time.Now().After(deadline) {
			return waited(ctx, eventlog.Errorf(eventlog.Busy, "%s is compacted, but a reader keeps its write-ahead log: it is emptied when that ends", s.db.path))
		}
	}
}

// bytes is what the database and its log take on disk.
func (d *database) bytes() (size int64, err error) {
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(d.path + suffix)
		switch {
		case errors.Is(err, fs.ErrNotExist) && suffix != "":
		case err != nil:
			return 0, fileError(d.path, "cannot see its size", err)
		default:
			size += info.Size()
		}
	}
	return size, nil
}
