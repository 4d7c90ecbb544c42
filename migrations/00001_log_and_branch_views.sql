-- +goose Up

-- One row a session that is there. Keys are never used again (AUTOINCREMENT), so
-- that what still names a deleted session can never name another.
CREATE TABLE sessions (
    key            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT NOT NULL UNIQUE,
    created_at     TEXT NOT NULL,
    cwd            TEXT NOT NULL,
    parent_session TEXT,              -- what the header says: an id, or a path in an imported one
    source         INTEGER,           -- key of the session that this one was forked from here
    fork_entry     TEXT,              -- the entry at which it was cut; null for a fork of the whole
    header         TEXT NOT NULL      -- the header line as it came
) STRICT;
CREATE INDEX sessions_by_cwd ON sessions (cwd, key);

-- The log: the only truth. Entries have n from 1 in their session; the events of
-- the session itself (session_created, session_forked, session_deleted) have n 0, no id,
-- and a seq of their own, so that every view and process applies them too.
CREATE TABLE events (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    session   INTEGER NOT NULL,
    n         INTEGER NOT NULL CHECK (n >= 0),
    id        TEXT,
    parent    TEXT,
    type      TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    payload   TEXT NOT NULL,
    CHECK ((n = 0) = (id IS NULL))
) STRICT;
CREATE INDEX events_by_id ON events (session, id);
CREATE UNIQUE INDEX events_by_n ON events (session, n);

-- An event is never changed, and deleted only while a guard is open for its
-- session, in the transaction that opens it. Opening one leaves an audit row.
CREATE TABLE guards (
    session INTEGER PRIMARY KEY,
    reason  TEXT NOT NULL,
    at      TEXT NOT NULL
) STRICT;
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    reason  TEXT NOT NULL,
    at      TEXT NOT NULL
) STRICT;
-- +goose StatementBegin
CREATE TRIGGER guards_leave_a_trace AFTER INSERT ON guards BEGIN
    INSERT INTO audit (session, reason, at) VALUES (new.session, new.reason, new.at);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events BEGIN
    SELECT raise(ABORT, 'events are append-only: no update');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
WHEN NOT EXISTS (SELECT 1 FROM guards WHERE session = old.session) BEGIN
    SELECT raise(ABORT, 'events are append-only: no delete');
END;
-- +goose StatementEnd

-- Sessions that were deleted here: they are not added again until that is undone.
CREATE TABLE tombstones (
    id         TEXT PRIMARY KEY,
    deleted_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- How far each projection has come. What it wrote and its position commit
-- together. A rebuild gives its rows a new build, so that who keeps answers in
-- memory sees that they may be others.
CREATE TABLE checkpoints (
    projection TEXT PRIMARY KEY,
    version    INTEGER NOT NULL,
    position   INTEGER NOT NULL,
    build      INTEGER NOT NULL DEFAULT (random())
) STRICT, WITHOUT ROWID;

-- The branch set: what follows is derived, and can be made again from the log.

-- A segment is a run of entries each appended to the one before. Depths count
-- from the root of the tree, over all segments above. A segment's parent is the
-- segment that it forked from, at depth start-1; jump is one farther ancestor
-- (skew-binary), with which it shares depths up to jump_shared.
CREATE TABLE segments (
    key         INTEGER PRIMARY KEY AUTOINCREMENT,
    session     INTEGER NOT NULL,
    parent      INTEGER,
    start       INTEGER NOT NULL,
    hops        INTEGER NOT NULL,    -- segments above it
    jump        INTEGER,
    jump_shared INTEGER,
    -- What the first entry has from its parent: the depth of the last compaction
    -- above it (-1: none), and the depth at which its branch stops (-1: the branch
    -- cannot be read, because it reaches a hole).
    compaction  INTEGER NOT NULL,
    stop        INTEGER NOT NULL,
    missing     TEXT                 -- of an island: the parent that is not there
) STRICT;
CREATE INDEX segments_by_parent ON segments (parent) WHERE parent IS NOT NULL;
CREATE INDEX segments_by_session ON segments (session);
CREATE INDEX segments_by_hole ON segments (session, missing) WHERE missing IS NOT NULL;

-- Where each entry stands: pos is segment << 32 | depth.
CREATE TABLE nodes (
    pos INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL UNIQUE
) STRICT;

-- Where each compaction stops the branches below it; the entries behind it in
-- its segment, up to the next compaction, have the same stop.
CREATE TABLE cuts (
    pos  INTEGER PRIMARY KEY,
    stop INTEGER NOT NULL
) STRICT;

CREATE TABLE heads (
    session   INTEGER PRIMARY KEY,
    leaf      TEXT,                  -- null: no leaf
    pos       INTEGER,               -- of the leaf; null: no leaf, or one that is not there
    n         INTEGER NOT NULL,      -- entries in the log
    last_seq  INTEGER NOT NULL,      -- of the session's last event
    name_seq  INTEGER,               -- of the last session_info
    irregular INTEGER NOT NULL,      -- 1: an id twice, or a parent behind its child; answered by the walk
    -- Totals, added up one by one in log order: SQL's sum() compensates, and differs.
    -- Null is no number: infinities that cancel.
    messages  INTEGER NOT NULL,
    cached    REAL,
    uncached  REAL,
    total     REAL,
    cost      REAL,
    fault     TEXT                   -- why the totals cannot be had: the first entry that does not count
) STRICT;

CREATE TABLE labels (
    session INTEGER NOT NULL,
    target  TEXT NOT NULL,
    label   TEXT NOT NULL,
    PRIMARY KEY (session, target)
) STRICT, WITHOUT ROWID;

-- The asynchronous views: derived too, each with its own checkpoint.

-- What a list of sessions shows.
CREATE TABLE catalog (
    session       INTEGER PRIMARY KEY,
    seq           INTEGER NOT NULL,  -- of the last event of the session that is in here
    cwd           TEXT NOT NULL,
    active        INTEGER NOT NULL,  -- time of the latest entry, ms since 1970
    name          TEXT NOT NULL,     -- '': none
    first_message TEXT NOT NULL,     -- how it begins
    entries       INTEGER NOT NULL,
    messages      INTEGER NOT NULL
) STRICT;
CREATE INDEX catalog_by_activity ON catalog (active, session);
CREATE INDEX catalog_by_cwd ON catalog (cwd, active, session);

-- For whoever asks in SQL; this program asks the tables.

-- The thinned closure, two rows a segment.
CREATE VIEW segment_closure AS
    SELECT key AS segment, parent AS ancestor, 1 AS distance, start - 1 AS shared
    FROM segments WHERE parent IS NOT NULL
    UNION ALL
    SELECT s.key, s.jump, s.hops - j.hops, s.jump_shared
    FROM segments s JOIN segments j ON j.key = s.jump WHERE s.jump <> s.parent;

-- Every proper ancestor of every entry, by seq: the whole closure, made as it is
-- asked for. Ask it for one entry at a time.
CREATE VIEW v_ancestors AS
    WITH RECURSIVE above (entry, depth, segment, top) AS (
        SELECT seq, pos & 0xffffffff, pos >> 32, (pos & 0xffffffff) - 1 FROM nodes
        UNION ALL
        SELECT a.entry, a.depth, s.parent, s.start - 1
        FROM above a JOIN segments s ON s.key = a.segment WHERE s.parent IS NOT NULL
    )
    SELECT a.entry, n.seq AS ancestor, a.depth - (n.pos & 0xffffffff) AS distance
    FROM above a
    JOIN nodes n ON n.pos BETWEEN a.segment << 32 AND a.segment << 32 | max(a.top, 0)
    WHERE a.top >= 0 AND (n.pos & 0xffffffff) < a.depth;

-- +goose Down
DROP VIEW v_ancestors;
DROP VIEW segment_closure;
DROP TABLE catalog;
DROP TABLE labels;
DROP TABLE heads;
DROP TABLE cuts;
DROP TABLE nodes;
DROP TABLE segments;
DROP TABLE checkpoints;
DROP TABLE tombstones;
DROP TABLE audit;
DROP TABLE guards;
DROP TABLE events;
DROP TABLE sessions;
