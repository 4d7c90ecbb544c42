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
    dialect        TEXT NOT NULL DEFAULT 'harness', -- by whose rules it is answered
    dialect_basis  TEXT NOT NULL DEFAULT '',        -- what decided that; '': a choice
    header         TEXT NOT NULL      -- the header line as it came
) STRICT;
CREATE INDEX sessions_by_cwd ON sessions (cwd, key);

-- The log: the only truth. Entries have n from 1 in their session; the events of
-- the session itself (session_created, session_forked, session_deleted) have n 0, no id,
-- and a seq of their own, so that every view and process applies them too. Where
-- moving the leaf is no entry it is an event leaf_moved without an id, whose n is
-- the seq of the session's event before it, negative.
CREATE TABLE events (
    seq       INTEGER PRIMARY KEY, -- rises and is never used again: see Store.Delete
    session   INTEGER NOT NULL,
    n         INTEGER NOT NULL,
    id        TEXT,
    parent    TEXT,
    type      TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    -- Of an entry: the first 16 bytes of SHA-256 over the hash of the entry before it
    -- in its session (nothing before the first) and the payload. Who changes an entry
    -- breaks the chain from there on.
    hash      BLOB,
    blob      INTEGER,             -- key of blobs, where the payload is kept there
    payload   TEXT,
    CHECK ((n <= 0) = (id IS NULL)),
    CHECK ((payload IS NULL) = (blob IS NOT NULL))
) STRICT;
CREATE INDEX events_by_id ON events (session, id);
CREATE UNIQUE INDEX events_by_n ON events (session, n);
CREATE INDEX events_by_blob ON events (blob) WHERE blob IS NOT NULL;

-- Large payloads, screenshots as a rule: each once, whatever forks and copies have it.
CREATE TABLE blobs (
    key  INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,     -- SHA-256 of the text
    text TEXT NOT NULL
) STRICT;

-- An event is deleted only while a guard is open for its session, and changed,
-- in nothing but its payload, only while that is to purge a text. A guard is open
-- in the transaction that opens it. Opening one leaves an audit row.
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
CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
WHEN NOT EXISTS (SELECT 1 FROM guards WHERE session = old.session AND reason = 'text purged')
    OR old.seq <> new.seq OR old.session <> new.session OR old.n <> new.n OR old.id IS NOT new.id OR old.parent IS NOT new.parent
    OR old.type <> new.type OR old.timestamp <> new.timestamp OR old.hash IS NOT new.hash BEGIN
    SELECT raise(ABORT, 'events are append-only: no update');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
WHEN NOT EXISTS (SELECT 1 FROM guards WHERE session = old.session) BEGIN
    SELECT raise(ABORT, 'events are append-only: no delete');
END;
-- +goose StatementEnd

-- A blob stays as it is as long as an event has it, and no longer.
-- +goose StatementBegin
CREATE TRIGGER blobs_are_never_changed BEFORE UPDATE ON blobs BEGIN
    SELECT raise(ABORT, 'blobs are append-only: no update');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER blobs_stay BEFORE DELETE ON blobs WHEN EXISTS (SELECT 1 FROM events WHERE blob = old.key) BEGIN
    SELECT raise(ABORT, 'an event has this blob');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER blobs_go_with_their_events AFTER DELETE ON events WHEN old.blob IS NOT NULL BEGIN
    DELETE FROM blobs WHERE key = old.blob AND NOT EXISTS (SELECT 1 FROM events WHERE blob = old.blob);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER blobs_are_purged AFTER UPDATE OF blob ON events WHEN old.blob IS NOT NULL AND old.blob IS NOT new.blob BEGIN
    DELETE FROM blobs WHERE key = old.blob AND NOT EXISTS (SELECT 1 FROM events WHERE blob = old.blob);
END;
-- +goose StatementEnd

-- Events out of whose payload a text was purged. Their hash is still that of what
-- they were.
CREATE TABLE redactions (
    seq     INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    at      TEXT NOT NULL
) STRICT;

-- Sessions that were deleted here: they are not added again until that is undone.
CREATE TABLE tombstones (
    id         TEXT PRIMARY KEY,
    deleted_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Who writes to a session alone, and until when. Tokens only rise, so that a row
-- stays when nobody holds the lease.
CREATE TABLE leases (
    session INTEGER PRIMARY KEY,
    token   INTEGER NOT NULL,
    holder  TEXT,                      -- null: it was released
    expires INTEGER NOT NULL           -- ms since 1970
) STRICT;

-- Files that sessions were imported from: how far each was read, and what it takes
-- to write the same bytes again (sessionfile has the terms).
CREATE TABLE sources (
    key         INTEGER PRIMARY KEY AUTOINCREMENT,
    path        TEXT NOT NULL,         -- absolute; of several with one path the last counts
    session     INTEGER NOT NULL,
    format      TEXT NOT NULL,         -- v1, v2, v3, v4
    newline     TEXT NOT NULL,         -- the gap where layout has none
    title       INTEGER NOT NULL,      -- length of a first line that changes in place
    n           INTEGER NOT NULL,      -- entries of the session that the file holds
    size        INTEGER NOT NULL,      -- of the file when it was read last
    modified    INTEGER NOT NULL,      -- its time then, ns since 1970
    read_to     INTEGER NOT NULL,      -- where the next read begins
    line        INTEGER NOT NULL,      -- and in which line
    hash        BLOB NOT NULL,         -- SHA-256 of what stands before, without the title
    tail        BLOB NOT NULL,         -- what stood behind: no entry yet
    imported_at TEXT NOT NULL
) STRICT;
CREATE INDEX sources_by_path ON sources (path);
CREATE INDEX sources_by_session ON sources (session);

-- What a file holds that is not in the payloads. Part -1: the edits that make the
-- file's text of the payload of entry n (0: of the header). Parts from 0: the gap
-- before it, where that is no newline; behind the last entry that of n + 1.
CREATE TABLE layout (
    source INTEGER NOT NULL,
    n      INTEGER NOT NULL,
    part   INTEGER NOT NULL,
    bytes  BLOB NOT NULL,
    PRIMARY KEY (source, n, part)
) STRICT;

-- Byte ranges of files that hold no entry. The bytes are in layout: those of the
-- part, and of as many before it as the length needs; with no n they are the tail.
CREATE TABLE damage (
    source INTEGER NOT NULL,
    n      INTEGER,
    part   INTEGER,
    line   INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL,
    reason TEXT NOT NULL
) STRICT;
CREATE INDEX damage_by_source ON damage (source, offset);

-- How far each projection has come. What it wrote and its position commit
-- together; a position of -1 is that of the last event, whichever that is: who
-- writes an event applies it in the same transaction. A rebuild gives its rows a new build, so that who keeps answers in
-- memory sees that they may be others.
CREATE TABLE checkpoints (
    projection TEXT PRIMARY KEY,
    version    INTEGER NOT NULL,
    position   INTEGER NOT NULL,
    build      INTEGER NOT NULL DEFAULT (random())
) STRICT, WITHOUT ROWID;

-- The branch set: what follows is derived, and can be made again from the log.

-- A segment is a run of entries that are neighbours in their session's log, each
-- the parent of the next; a compaction starts one. So the log says of each entry
-- in which segment it is, the last of its session that does not start behind it,
-- and an append behind its parent writes no row here. Rows never change. Depths
-- count from the root of the tree, over all segments above. A segment's parent is
-- the segment that it forked from, at depth start-1; jump is one farther ancestor
-- (skew-binary), with which it shares depths up to jump_shared.
CREATE TABLE segments (
    key         INTEGER PRIMARY KEY, -- the seq of its first entry
    session     INTEGER NOT NULL,
    first       INTEGER NOT NULL,    -- the n of its first entry
    parent      INTEGER,
    start       INTEGER NOT NULL,    -- the depth of its first entry
    hops        INTEGER NOT NULL,    -- segments above it
    jump        INTEGER,
    jump_shared INTEGER,
    -- What its entries have in common: the depth of the last compaction above them
    -- or at the first (-1: none), and the depth at which their branches stop (-1:
    -- they cannot be read, because they reach a hole).
    compaction  INTEGER NOT NULL,
    stop        INTEGER NOT NULL,
    missing     TEXT,                -- of an island: the parent that is not there
    -- Where settings are kept: those at the first entry's parent. And the depth from
    -- which the last compaction keeps entries, its own for none.
    settings    TEXT NOT NULL,
    kept        INTEGER NOT NULL
) STRICT;
CREATE INDEX segments_by_parent ON segments (parent, start) WHERE parent IS NOT NULL;
CREATE INDEX segments_by_session ON segments (session);
CREATE INDEX segments_by_hole ON segments (session, missing) WHERE missing IS NOT NULL;

-- Where settings change within a segment (in dialects that keep them).
CREATE TABLE settings (
    session INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    value   TEXT NOT NULL,
    PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE heads (
    session   INTEGER PRIMARY KEY,
    leaf      TEXT,                  -- null: no leaf
    leaf_n    INTEGER,               -- the leaf's n; null: no leaf, or one that is not there
    segment   INTEGER,               -- the leaf's segment
    n         INTEGER NOT NULL,      -- entries in the log
    last_seq  INTEGER NOT NULL,      -- of the session's last event
    hash      BLOB,                  -- of the last entry; null: there is none
    name_seq  INTEGER,               -- of the last session_info
    irregular INTEGER NOT NULL,      -- 1: an id twice, or a parent behind its child; answered by the walk
    -- Totals, added up one by one in log order: SQL's sum() compensates, and differs.
    -- Null is no number: infinities that cancel.
    messages  INTEGER NOT NULL,
    cached    REAL,
    uncached  REAL,
    total     REAL,
    cost      REAL,
    -- By role and by kind, where the dialect counts so.
    users       INTEGER NOT NULL,
    assistants  INTEGER NOT NULL,
    tool_calls  INTEGER NOT NULL,
    tool_results INTEGER NOT NULL,
    input       REAL,
    output      REAL,
    cache_read  REAL,
    cache_write REAL,
    fault     TEXT,                  -- why the totals cannot be had: the first entry that does not count
    settings  TEXT NOT NULL          -- at the leaf
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

-- What was spent. A model is named once.
CREATE TABLE models (
    key      INTEGER PRIMARY KEY,
    provider TEXT NOT NULL,
    model    TEXT NOT NULL,
    UNIQUE (provider, model)
) STRICT;

-- One row for each copy of a billed response; of the rows with one identity one
-- counts (projections.Usage says which). No row changes because a leaf moves, unless
-- the response has copies.
CREATE TABLE usage (
    seq         INTEGER PRIMARY KEY,   -- of the entry
    session     INTEGER NOT NULL,
    n           INTEGER NOT NULL,
    identity    INTEGER NOT NULL,
    at          INTEGER NOT NULL,      -- ms since 1970; 0: no time that can be read
    kind        INTEGER NOT NULL,      -- eventlog.BillKind
    model       INTEGER NOT NULL,      -- key of models
    input       INTEGER NOT NULL,      -- tokens
    output      INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cost        INTEGER NOT NULL,      -- billionths
    -- 0: another copy counts. Of several copies this one counts, 1: as live, 2: as
    -- abandoned. 3: it has no copies, and counts as the way of its session says.
    counted     INTEGER NOT NULL
) STRICT;
CREATE INDEX usage_by_identity ON usage (identity);
CREATE INDEX usage_by_session ON usage (session, n);
CREATE INDEX usage_by_time ON usage (at);

-- For which leaf the sums of a session hold: of its entries up to n those are live
-- that stand on the way from the leaf to the root, and those behind n. A session all
-- of whose entries are live has no row.
CREATE TABLE usage_leaves (
    session INTEGER PRIMARY KEY,
    segment INTEGER NOT NULL,          -- the leaf's, 0 for no leaf
    leaf    INTEGER NOT NULL,          -- its n
    n       INTEGER NOT NULL,
    walked  INTEGER NOT NULL           -- 1: an irregular session's; usage_walks has what is live
) STRICT;
CREATE TABLE usage_walks (
    session INTEGER NOT NULL,
    low     INTEGER NOT NULL,          -- from n low to high
    high    INTEGER NOT NULL,
    PRIMARY KEY (session, low)
) STRICT, WITHOUT ROWID;

-- The sums of the rows that count: by all that is asked for, by time alone, and
-- without the time, each as small as its questions allow.
CREATE TABLE usage_rollup (
    bucket      INTEGER NOT NULL,      -- quarters of an hour since 1970, UTC
    session     INTEGER NOT NULL,
    model       INTEGER NOT NULL,
    kind        INTEGER NOT NULL,
    counted     INTEGER NOT NULL,      -- 1 live, 2 abandoned
    responses   INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cost        INTEGER NOT NULL,
    PRIMARY KEY (bucket, session, model, kind, counted)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage_times (
    bucket      INTEGER NOT NULL,
    kind        INTEGER NOT NULL,
    counted     INTEGER NOT NULL,
    responses   INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cost        INTEGER NOT NULL,
    PRIMARY KEY (bucket, kind, counted)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage_sessions (
    session     INTEGER NOT NULL,
    model       INTEGER NOT NULL,
    kind        INTEGER NOT NULL,
    counted     INTEGER NOT NULL,
    responses   INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cost        INTEGER NOT NULL,
    PRIMARY KEY (session, model, kind, counted)
) STRICT, WITHOUT ROWID;

-- Calls of tools. Those count whose message does.
CREATE TABLE tools (
    key  INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE tool_calls (
    seq          INTEGER NOT NULL,     -- of the assistant message
    idx          INTEGER NOT NULL,     -- which of its calls, from 0
    session      INTEGER NOT NULL,
    at           INTEGER NOT NULL,     -- ms since 1970
    tool         INTEGER NOT NULL,     -- key of tools
    call_id      TEXT NOT NULL,
    input_bytes  INTEGER NOT NULL,     -- of the arguments, as JSON
    retry        INTEGER NOT NULL,     -- 1: the call of the tool before it, in its session, failed
    result_seq   INTEGER,              -- of the result; null: none yet
    result_at    INTEGER,
    failed       INTEGER NOT NULL,     -- 1: the result says that it is an error
    result_bytes INTEGER NOT NULL,     -- of the result's content, as JSON
    counted      INTEGER NOT NULL,     -- 0: it counts elsewhere
    PRIMARY KEY (seq, idx)
) STRICT, WITHOUT ROWID;
CREATE INDEX tool_calls_by_id ON tool_calls (session, call_id);
CREATE INDEX tool_calls_by_tool ON tool_calls (session, tool, seq);
CREATE INDEX tool_calls_by_time ON tool_calls (at);

-- The sums of the calls that count.
CREATE TABLE tool_sums (
    session      INTEGER NOT NULL,
    day          INTEGER NOT NULL,     -- days since 1970, UTC
    tool         INTEGER NOT NULL,
    calls        INTEGER NOT NULL,
    failed       INTEGER NOT NULL,
    retries      INTEGER NOT NULL,
    no_result    INTEGER NOT NULL,
    input_bytes  INTEGER NOT NULL,
    result_bytes INTEGER NOT NULL,
    millis       INTEGER NOT NULL,     -- from the calls to their results
    PRIMARY KEY (session, day, tool)
) STRICT, WITHOUT ROWID;

-- A turn: a message of the user with what its session got until the next. It
-- counts if its first response does.
CREATE TABLE turns (
    seq       INTEGER PRIMARY KEY,     -- of the user's message
    session   INTEGER NOT NULL,
    at        INTEGER NOT NULL,        -- ms since 1970
    first     INTEGER,                 -- seq of its first response; null: none yet
    last      INTEGER NOT NULL,        -- seq of its latest entry
    millis    INTEGER NOT NULL,        -- from the message to the latest response or result
    responses INTEGER NOT NULL,
    calls     INTEGER NOT NULL,
    counted   INTEGER NOT NULL
) STRICT;
CREATE INDEX turns_by_session ON turns (session, seq);
CREATE INDEX turns_by_first ON turns (first) WHERE first IS NOT NULL;
CREATE INDEX turns_by_length ON turns (millis) WHERE counted = 1;
CREATE INDEX turns_by_time ON turns (at);

CREATE TABLE compactions (
    seq           INTEGER PRIMARY KEY,
    session       INTEGER NOT NULL,
    identity      INTEGER NOT NULL,    -- the same for copies
    at            INTEGER NOT NULL,    -- ms since 1970
    tokens_before INTEGER NOT NULL,
    retained      INTEGER              -- messages kept by value; null: kept by place
) STRICT;
CREATE INDEX compactions_by_session ON compactions (session, seq);
CREATE INDEX compactions_by_identity ON compactions (identity);

-- The full-text index, by the kinds of eventlog.TextKind. It holds terms, not
-- texts; the tokenizer only takes them apart at the blanks.
CREATE VIRTUAL TABLE search USING fts5 (
    message, summary, name, label, call, result, session,
    content = '', contentless_delete = 1, tokenize = 'ascii'
);
CREATE VIRTUAL TABLE search_terms USING fts5vocab (search, col);

-- For whoever asks in SQL; this program asks the tables.

-- The thinned closure, two rows a segment.
CREATE VIEW segment_closure AS
    SELECT key AS segment, parent AS ancestor, 1 AS distance, start - 1 AS shared
    FROM segments WHERE parent IS NOT NULL
    UNION ALL
    SELECT s.key, s.jump, s.hops - j.hops, s.jump_shared
    FROM segments s JOIN segments j ON j.key = s.jump WHERE s.jump <> s.parent;

-- Every proper ancestor of every entry, by seq: the whole closure, made as it is
-- asked for, at the cost of the rows that are asked for. Irregular sessions have
-- none here.
CREATE VIEW v_ancestors AS
    SELECT e.seq AS entry, a.seq AS ancestor,
        own.start + e.n - own.first - (s.start + a.n - s.first) AS distance
    FROM events e CROSS JOIN heads h CROSS JOIN segments own
    -- The segments on the way up, each with the depth up to which it is shared.
    CROSS JOIN json_each((
        WITH RECURSIVE up (segment, top) AS (
            SELECT own.key, own.start + e.n - own.first - 1
            UNION ALL
            SELECT s.parent, s.start - 1 FROM up JOIN segments s ON s.key = up.segment WHERE s.parent IS NOT NULL
        )
        SELECT json_group_array(json_array(segment, top)) FROM up
    )) way
    CROSS JOIN segments s CROSS JOIN events a
    WHERE e.n > 0 AND h.session = e.session AND NOT h.irregular
        AND own.key = (SELECT key FROM segments WHERE session = e.session AND key <= e.seq ORDER BY key DESC LIMIT 1)
        AND s.key = way.value ->> 0
        AND a.session = s.session AND a.n BETWEEN s.first AND s.first + (way.value ->> 1) - s.start;

-- The views for whoever asks in SQL: query/VIEWS.md has their columns. They call
-- nothing that the sqlite3 shell lacks. Where an entry's id is a query of its own, a sum
-- that does not ask for it reads nothing of the log.

CREATE VIEW v_freshness AS
    SELECT projection AS view, version, iif(position < 0, last.seq, position) AS position, last.seq AS last_event,
        iif(position < 0, 0, max(last.seq - position, 0)) AS lag
    FROM checkpoints, (SELECT coalesce(max(seq), 0) AS seq FROM events) last;

CREATE VIEW v_sessions AS
    SELECT s.id AS session, c.cwd, c.name, c.first_message, c.active,
        CASE WHEN c.active > 0 THEN datetime(c.active / 1000, 'unixepoch') END AS active_utc,
        s.created_at, c.entries, c.messages, h.leaf, s.dialect, f.id AS forked_from, s.fork_entry, s.parent_session
    FROM catalog c JOIN sessions s ON s.key = c.session LEFT JOIN heads h ON h.session = s.key LEFT JOIN sessions f ON f.key = s.source;

CREATE VIEW v_entries AS
    SELECT s.id AS session, e.n, e.id AS entry, e.parent, e.type, e.timestamp,
        CAST(round((julianday(e.timestamp) - 2440587.5) * 86400000) AS INTEGER) AS at, e.seq, length(CAST(coalesce(e.payload, (SELECT text FROM blobs WHERE key = e.blob)) AS BLOB)) AS bytes,
        coalesce(e.payload, (SELECT text FROM blobs WHERE key = e.blob)) AS payload
    FROM events e JOIN sessions s ON s.key = e.session WHERE e.n > 0;

CREATE VIEW v_messages AS
    SELECT s.id AS session, e.n, e.id AS entry, e.parent, e.timestamp,
        CAST(round((julianday(e.timestamp) - 2440587.5) * 86400000) AS INTEGER) AS at,
        CASE e.type WHEN 'message' THEN e.json ->> '$.message.role' ELSE 'custom' END AS role,
        CASE e.type WHEN 'message' THEN CASE json_type(e.json, '$.message.content')
            WHEN 'array' THEN (SELECT group_concat(b.value ->> '$.text', char(10)) FROM json_each(e.json, '$.message.content') b WHERE b.type = 'object' AND b.value ->> '$.type' = 'text')
            WHEN 'text' THEN e.json ->> '$.message.content' END
        ELSE CASE json_type(e.json, '$.content')
            WHEN 'array' THEN (SELECT group_concat(b.value ->> '$.text', char(10)) FROM json_each(e.json, '$.content') b WHERE b.type = 'object' AND b.value ->> '$.type' = 'text')
            WHEN 'text' THEN e.json ->> '$.content' END
        END AS text,
        e.json ->> '$.message.provider' AS provider, e.json ->> '$.message.model' AS model, e.json ->> '$.message.stopReason' AS stop_reason,
        e.json ->> '$.message.toolName' AS tool, e.json ->> '$.message.toolCallId' AS call, length(CAST(e.payload AS BLOB)) AS bytes
    FROM (SELECT session, n, id, parent, type, timestamp, payload, CASE WHEN json_valid(payload) THEN payload ELSE '{}' END AS json
        FROM (SELECT e.session, e.n, e.id, e.parent, e.type, e.timestamp, coalesce(e.payload, (SELECT text FROM blobs WHERE key = e.blob)) AS payload FROM events e)) e JOIN sessions s ON s.key = e.session
    WHERE e.n > 0 AND e.type IN ('message', 'custom_message');

CREATE VIEW v_labels AS
    SELECT s.id AS session, l.target AS entry, l.label FROM labels l JOIN sessions s ON s.key = l.session;

-- The way from each session's leaf to the root, made as it is asked for.
CREATE VIEW v_live AS
    SELECT s.id AS session, e.n, e.id AS entry, g.start + e.n - g.first AS depth
    FROM sessions s CROSS JOIN heads h CROSS JOIN json_each((
        WITH RECURSIVE up (segment, top) AS (
            SELECT h.segment, h.leaf_n
            UNION ALL
            SELECT g.parent, p.first + g.start - 1 - p.start
            FROM up JOIN segments g ON g.key = up.segment JOIN segments p ON p.key = g.parent
        )
        SELECT json_group_array(json_array(segment, top)) FROM up
    )) way CROSS JOIN segments g CROSS JOIN events e
    WHERE h.session = s.key AND NOT h.irregular AND g.key = way.value ->> 0
        AND e.session = g.session AND e.n BETWEEN g.first AND way.value ->> 1;

CREATE VIEW v_branches AS
    SELECT s.id AS session, a.id AS first, z.id AS last, g.first AS first_n, g.last AS last_n,
        g.last - g.first + 1 AS entries, g.start AS depth, f.id AS from_entry,
        CASE WHEN g.parent IS NULL THEN 'root' WHEN f.n < g.above THEN 'fork' WHEN a.type = 'compaction' THEN 'compaction' ELSE 'continued' END AS how,
        NOT EXISTS (SELECT 1 FROM segments x WHERE x.parent = g.key AND x.start = g.start + g.last - g.first + 1) AS tip,
        coalesce(g.key = g.leaf_segment, 0) AS leaf
    FROM (
        SELECT g.*, h.segment AS leaf_segment, p.first + g.start - 1 - p.start AS from_n,
            coalesce((SELECT x.first - 1 FROM segments x WHERE x.session = g.session AND x.key > g.key ORDER BY x.key LIMIT 1), h.n) AS last,
            coalesce((SELECT x.first - 1 FROM segments x WHERE x.session = p.session AND x.key > p.key ORDER BY x.key LIMIT 1), h.n) AS above
        FROM segments g JOIN heads h ON h.session = g.session LEFT JOIN segments p ON p.key = g.parent WHERE NOT h.irregular
    ) g JOIN sessions s ON s.key = g.session
    JOIN events a ON a.session = g.session AND a.n = g.first JOIN events z ON z.session = g.session AND z.n = g.last
    LEFT JOIN events f ON f.session = g.session AND f.n = g.from_n;

-- The responses that count, each as what. One without copies goes up from its
-- session's leaf, by jumps, to the depth at which it stands, and is live if it comes
-- into its own segment.
CREATE VIEW usage_counted AS
    SELECT u.seq, u.session, u.n, u.at, u.kind, u.model, u.input, u.output, u.cache_read, u.cache_write, u.cost,
        CASE WHEN u.counted < 3 THEN u.counted WHEN l.session IS NULL OR u.n > l.n THEN 1
        WHEN l.walked THEN 2 - coalesce((SELECT w.high >= u.n FROM usage_walks w WHERE w.session = u.session AND w.low <= u.n ORDER BY w.low DESC LIMIT 1), 0)
        WHEN u.n > l.leaf THEN 2
        ELSE 2 - (SELECT own.key = l.segment OR EXISTS (
            WITH RECURSIVE up (key, start, parent, jump, jump_shared) AS (
                SELECT key, start, parent, jump, jump_shared FROM segments WHERE key = l.segment
                UNION ALL
                SELECT s.key, s.start, s.parent, s.jump, s.jump_shared
                FROM up JOIN segments s ON s.key = iif(up.jump_shared >= own.start + u.n - own.first, up.jump, up.parent)
                WHERE up.start > own.start + u.n - own.first
            )
            SELECT 1 FROM up WHERE key = own.key)
            FROM segments own WHERE own.key = (SELECT key FROM segments WHERE session = u.session AND key <= u.seq ORDER BY key DESC LIMIT 1))
        END AS counted
    FROM usage u LEFT JOIN usage_leaves l ON l.session = u.session
    WHERE u.counted > 0;

CREATE VIEW v_usage AS
    SELECT s.id AS session, u.n, (SELECT id FROM events WHERE seq = u.seq) AS entry, u.at, CASE WHEN u.at > 0 THEN datetime(u.at / 1000, 'unixepoch') END AS time_utc, s.cwd,
        CASE u.kind WHEN 1 THEN 'assistant' WHEN 2 THEN 'compaction' WHEN 3 THEN 'branch_summary' WHEN 4 THEN 'usage' ELSE 'tool_result' END AS kind,
        CASE WHEN u.kind = 2 THEN 'compaction' WHEN u.kind = 3 THEN 'branch_summary' WHEN u.counted = 1 THEN 'live' ELSE 'abandoned' END AS class,
        m.provider, m.model, u.input, u.output, u.cache_read, u.cache_write,
        u.input + u.output + u.cache_read + u.cache_write AS tokens, u.cost / 1e9 AS cost
    FROM usage_counted u JOIN sessions s ON s.key = u.session LEFT JOIN models m ON m.key = u.model;

CREATE VIEW v_usage_daily AS
    SELECT CASE WHEN r.bucket > 0 THEN date(r.bucket * 900, 'unixepoch') END AS day, m.provider, m.model,
        CASE WHEN r.kind = 2 THEN 'compaction' WHEN r.kind = 3 THEN 'branch_summary' WHEN r.counted = 1 THEN 'live' ELSE 'abandoned' END AS class,
        sum(r.responses) AS responses, sum(r.input) AS input, sum(r.output) AS output,
        sum(r.cache_read) AS cache_read, sum(r.cache_write) AS cache_write, sum(r.cost) / 1e9 AS cost
    FROM usage_rollup r JOIN models m ON m.key = r.model GROUP BY 1, 2, 3, 4;

CREATE VIEW v_tool_calls AS
    SELECT s.id AS session, (SELECT n FROM events WHERE seq = c.seq) AS n, (SELECT id FROM events WHERE seq = c.seq) AS entry, c.call_id AS call, t.name AS tool, c.at,
        CASE WHEN c.at > 0 THEN datetime(c.at / 1000, 'unixepoch') END AS time_utc, c.retry, c.failed,
        c.result_seq IS NOT NULL AS has_result, CASE WHEN c.at > 0 THEN c.result_at - c.at END AS millis, c.input_bytes, c.result_bytes
    FROM tool_calls c JOIN sessions s ON s.key = c.session LEFT JOIN tools t ON t.key = c.tool
    WHERE c.counted = 1;

CREATE VIEW v_turns AS
    SELECT s.id AS session, (SELECT n FROM events WHERE seq = t.seq) AS n, (SELECT id FROM events WHERE seq = t.seq) AS entry, t.at, CASE WHEN t.at > 0 THEN datetime(t.at / 1000, 'unixepoch') END AS time_utc,
        t.millis, t.responses, t.calls
    FROM turns t JOIN sessions s ON s.key = t.session WHERE t.counted = 1;

CREATE VIEW v_compactions AS
    SELECT s.id AS session, e.n, e.id AS entry, c.at, CASE WHEN c.at > 0 THEN datetime(c.at / 1000, 'unixepoch') END AS time_utc,
        c.tokens_before, coalesce(c.retained, g.start - g.stop) AS kept, c.retained IS NOT NULL AS by_value,
        u.input, u.output, u.cache_read, u.cache_write, u.cost / 1e9 AS cost
    FROM compactions c JOIN sessions s ON s.key = c.session LEFT JOIN events e ON e.seq = c.seq
    LEFT JOIN segments g ON g.key = c.seq LEFT JOIN usage u ON u.seq = c.seq
    WHERE NOT EXISTS (SELECT 1 FROM compactions d JOIN sessions o ON o.key = d.session
        WHERE d.identity = c.identity AND (o.source IS NOT NULL, d.at, o.id, d.seq) < (s.source IS NOT NULL, c.at, s.id, c.seq));

-- +goose Down
DROP VIEW v_compactions;
DROP VIEW v_turns;
DROP VIEW v_tool_calls;
DROP VIEW v_usage_daily;
DROP VIEW v_usage;
DROP VIEW usage_counted;
DROP VIEW v_branches;
DROP VIEW v_live;
DROP VIEW v_labels;
DROP VIEW v_messages;
DROP VIEW v_entries;
DROP VIEW v_sessions;
DROP VIEW v_freshness;
DROP VIEW v_ancestors;
DROP VIEW segment_closure;
DROP TABLE search_terms;
DROP TABLE search;
DROP TABLE compactions;
DROP TABLE turns;
DROP TABLE tool_sums;
DROP TABLE tool_calls;
DROP TABLE tools;
DROP TABLE usage_walks;
DROP TABLE usage_leaves;
DROP TABLE usage_sessions;
DROP TABLE usage_times;
DROP TABLE usage_rollup;
DROP TABLE usage;
DROP TABLE models;
DROP TABLE catalog;
DROP TABLE labels;
DROP TABLE heads;
DROP TABLE settings;
DROP TABLE segments;
DROP TABLE checkpoints;
DROP TABLE damage;
DROP TABLE layout;
DROP TABLE sources;
DROP TABLE leases;
DROP TABLE tombstones;
DROP TABLE redactions;
DROP TABLE audit;
DROP TABLE guards;
DROP TABLE events;
DROP TABLE blobs;
DROP TABLE sessions;
