package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
)

// Lease is the right to write to one session alone, for hosts that want more than
// turns. While it runs, every append to the session, a delete and an import of it
// fail with [eventlog.ErrBusy] and a [LeaseError] that says who holds it, in this
// process and all others, save those of [Lease.Open].
//
// A lease ends when it is released, or when its time is over. Its token is higher
// than that of every lease of the session before it: a holder that was away for too
// long, and comes back to find its place taken, is refused by the token, inside the
// transaction, however its clock goes. Give it to other systems that the holder
// writes to, so that they can refuse an older one too.
//
// Times are the machine's, or those of [Options.Source]: all that open a database
// share a machine.
type Lease struct {
	Session string // its id
	Holder  string
	Token   int64

	store   *Store
	storage *Storage
	expires atomic.Int64 // ms since 1970
}

// LeaseError is the cause of a Busy: the lease that stands in the way. Holder is ""
// if there is none any more, because the caller's own has ended.
type LeaseError struct {
	Session string
	Holder  string
	Token   int64
	Expires time.Time
}

func (e *LeaseError) Error() string {
	if e.Holder == "" {
		return "the lease has ended, and nobody holds another"
	}
	return fmt.Sprintf("%q holds it alone until %s (token %d)", e.Holder, e.Expires.UTC().Format(time.RFC3339Nano), e.Token)
}

// Lease takes the lease of the session for ttl. A holder that has it already, in a
// process that crashed perhaps, gets a new one at once; all others get
// [eventlog.ErrBusy] with a [LeaseError] until it is released or its time is over.
// It also fails with [eventlog.ErrNotFound], and with [eventlog.ErrInvalidArgument]
// for a holder without a name or a ttl under a millisecond.
func (s *Store) Lease(ctx context.Context, m eventlog.Metadata, holder string, ttl time.Duration) (*Lease, error) {
	if holder == "" {
		return nil, eventlog.Errorf(eventlog.InvalidArgument, "the holder of a lease has a name")
	}
	if err := checkTTL(ttl); err != nil {
		return nil, err
	}
	st, err := s.session(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	l := &Lease{Session: m.ID, Holder: holder, store: s, storage: st}
	err = s.writeLease(ctx, func(ctx context.Context, tx *projections.Tx) error {
		var one int
		if there, err := tx.Row(ctx, "SELECT 1 FROM sessions WHERE key = ?", []any{st.key}, &one); err != nil {
			return err
		} else if !there {
			return st.deleted()
		}
		now := s.now()
		held, err := readLease(ctx, tx, st.key)
		if err != nil {
			return err
		}
		if held.live(now) && held.holder.String != holder {
			return held.busy(m.ID)
		}
		l.Token = held.token + 1
		l.expires.Store(now.Add(ttl).UnixMilli())
		_, err = tx.Exec(ctx, `INSERT INTO leases (session, token, holder, expires) VALUES (?1, ?2, ?3, ?4)
			ON CONFLICT (session) DO UPDATE SET token = ?2, holder = ?3, expires = ?4`, st.key, l.Token, holder, l.expires.Load())
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func checkTTL(ttl time.Duration) error {
	if ttl < time.Millisecond {
		return eventlog.Errorf(eventlog.InvalidArgument, "a lease lasts a millisecond or more, not %v", ttl)
	}
	return nil
}

// Expires is when the lease ends, unless it is renewed.
func (l *Lease) Expires() time.Time { return time.UnixMilli(l.expires.Load()) }

// Open opens the session for the lease's holder: its appends succeed as long as the
// lease runs, and fail with [eventlog.ErrBusy] and a [LeaseError] when it has
// ended.
func (l *Lease) Open() *eventlog.Session {
	return eventlog.NewSession(&Storage{store: l.store, key: l.storage.key, meta: l.storage.meta, lease: l})
}

// Renew makes the lease last for ttl from now. It fails with [eventlog.ErrBusy] if
// it has ended: others may have written since then, so that it has to be taken anew.
func (l *Lease) Renew(ctx context.Context, ttl time.Duration) error {
	if err := checkTTL(ttl); err != nil {
		return err
	}
	var expires int64
	err := l.store.writeLease(ctx, func(ctx context.Context, tx *projections.Tx) error {
		if err := l.storage.fence(ctx, tx, l); err != nil {
			return err
		}
		expires = l.store.now().Add(ttl).UnixMilli()
		_, err := tx.Exec(ctx, "UPDATE leases SET expires = ? WHERE session = ?", expires, l.storage.key)
		return err
	})
	if err == nil {
		l.expires.Store(expires)
	}
	return err
}

// Release ends the lease; one that has ended already is no error.
func (l *Lease) Release(ctx context.Context) error {
	return l.store.writeLease(ctx, func(ctx context.Context, tx *projections.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE leases SET holder = NULL WHERE session = ? AND token = ?", l.storage.key, l.Token)
		return err
	})
}

func (s *Store) writeLease(ctx context.Context, f func(ctx context.Context, tx *projections.Tx) error) error {
	if s.writer == nil {
		return s.readOnly()
	}
	return s.writer.update(ctx, f)
}

// now is the time by which leases run.
func (s *Store) now() time.Time {
	if s.o.Source.Now != nil {
		return s.o.Source.Now()
	}
	return time.Now()
}

// lease is a row of leases; the token is 0 where there is none.
type leaseRow struct {
	token   int64
	holder  sql.NullString
	expires int64
}

func readLease(ctx context.Context, tx *projections.Tx, session int64) (r leaseRow, err error) {
	_, err = tx.Row(ctx, "SELECT token, holder, expires FROM leases WHERE session = ?", []any{session}, &r.token, &r.holder, &r.expires)
	return r, err
}

func (r leaseRow) live(now time.Time) bool { return r.holder.Valid && now.UnixMilli() < r.expires }

// busy is the error for whoever the lease keeps out.
func (r leaseRow) busy(session string) error {
	return &eventlog.Error{Code: eventlog.Busy, Message: "Session " + session + " is leased",
		Err: &LeaseError{Session: session, Holder: r.holder.String, Token: r.token, Expires: time.UnixMilli(r.expires)}}
}

// fence refuses a write to the session by whoever does not hold its lease. mine is
// the writer's own, nil for none.
func (s *Storage) fence(ctx context.Context, tx *projections.Tx, mine *Lease) error {
	return s.store.fence(ctx, tx, s.key, s.meta.ID, mine)
}

func (s *Store) fence(ctx context.Context, tx *projections.Tx, session int64, id string, mine *Lease) error {
	if mine == nil {
		if free, err := s.writer.tips.nobodyLeases(ctx, tx); err != nil || free {
			return err
		}
	}
	held, err := readLease(ctx, tx, session)
	if err != nil || held.token == 0 && mine == nil {
		return err
	}
	live := held.live(s.now())
	switch {
	case mine == nil && !live, live && mine != nil && mine.Token == held.token:
		return nil
	case live:
		return held.busy(id)
	}
	return &eventlog.Error{Code: eventlog.Busy, Message: "Session " + id + " was leased by " + fmt.Sprintf("%q", mine.Holder), Err: &LeaseError{Session: id}}
}
