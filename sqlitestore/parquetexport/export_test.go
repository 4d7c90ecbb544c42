package parquetexport_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/parquetexport"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

var march = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// filled is a store with a session in March that branches, calls tools and is forked,
// one in April, and entries without a time.
func filled(t *testing.T) *sqlitestore.Store {
	t.Helper()
	now := march
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal, Source: eventlog.Source{Now: func() time.Time { now = now.Add(time.Second); return now }}})
	a := add(t, s, "a", "/project",
		`{"type":"message","id":"q1","parentId":null,"timestamp":"2026-03-01T10:00:00.000Z","message":{"role":"user","content":"Make it faster."}}`,
		`{"type":"message","id":"a1","parentId":"q1","timestamp":"2026-03-01T10:00:01.000Z","message":{"role":"assistant","content":[{"type":"text","text":"one"},{"type":"toolCall","id":"c1","name":"edit","arguments":{"x":1}},{"type":"text","text":"two \ud83d"}],"provider":"acme","model":"coder","stopReason":"toolUse","usage":{"input":10,"output":2,"cacheRead":3,"cacheWrite":4,"cost":{"total":0.123456789}}}}`,
		`{"type":"message","id":"r1","parentId":"a1","timestamp":"2026-03-01T10:00:04.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"edit","isError":true,"content":[{"type":"text","text":"no"}]}}`,
		`{"type":"message","id":"a2","parentId":"r1","timestamp":"2026-03-31T23:59:59.999Z","message":{"role":"assistant","content":[],"provider":"acme","model":"coder","usage":{"input":100,"output":0,"cacheRead":0,"cacheWrite":0,"cost":{"total":1}}}}`,
		`{"type":"custom_message","id":"m1","parentId":"a2","timestamp":"2026-04-01T00:00:00.000Z","customType":"note","content":"a note","display":true}`,
		`{"type":"strange","id":"x1","parentId":"m1","timestamp":"no time","more":[1e400,"`+"\xff"+`"]}`)
	add(t, s, "b", "/other",
		`{"type":"message","id":"late","parentId":null,"timestamp":"2026-04-30T12:00:00.000+02:00","message":{"role":"assistant","content":"text","usage":{"input":5,"cost":{"total":0.5}}}}`)
	_, err := s.Fork(t.Context(), a, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "fork", CWD: "/fork"}})
	require.NoError(t, err)
	return s
}

func add(t *testing.T, s *sqlitestore.Store, id, cwd string, lines ...string) eventlog.Metadata {
	t.Helper()
	m := eventlog.Metadata{ID: id, CreatedAt: js.ISO(march), CWD: cwd}
	var entries []eventlog.Entry
	for _, line := range lines {
		e, err := eventlog.ParseEntry(line)
		require.NoError(t, err)
		entries = append(entries, e)
	}
	session, err := s.Add(t.Context(), m, entries)
	require.NoError(t, err)
	require.NoError(t, session.Close())
	return m
}

// rowsOf reads all files of a table back, a line a row; what is null is empty.
func rowsOf[T any](t *testing.T, dir, table string) (lines []string) {
	t.Helper()
	names, err := fs.Glob(os.DirFS(dir), table+"/month=*/*")
	require.NoError(t, err)
	for _, name := range names {
		path := filepath.Join(dir, name)
		rows, err := parquet.ReadFile[T](path)
		require.NoError(t, err, path)
		for _, row := range rows {
			v := reflect.ValueOf(row)
			var cells []string
			for i := range v.NumField() {
				cell := reflect.Indirect(v.Field(i))
				if !cell.IsValid() {
					cell = reflect.ValueOf("")
				}
				cells = append(cells, fmt.Sprint(cell))
			}
			if at := v.FieldByName("At").Int(); at > 0 {
				require.Equal(t, "month="+time.UnixMilli(at).UTC().Format("2006-01"), filepath.Base(filepath.Dir(path)))
			} else {
				require.Equal(t, "month=__HIVE_DEFAULT_PARTITION__", filepath.Base(filepath.Dir(path)))
			}
			lines = append(lines, strings.Join(cells, "|"))
		}
	}
	slices.Sort(lines)
	return lines
}

// stored are rows of the database, as rowsOf has them.
func stored(t *testing.T, s *sqlitestore.Store, text string) (lines []string) {
	t.Helper()
	require.NoError(t, s.SQL(t.Context(), text, func([]string) error { return nil }, func(row []any) error {
		cells := make([]string, len(row))
		for i, v := range row {
			if cells[i] = fmt.Sprint(v); v == nil {
				cells[i] = ""
			}
		}
		lines = append(lines, js.DecodeUTF8(strings.Join(cells, "|")))
		return nil
	}))
	slices.Sort(lines)
	return lines
}

// requireSame holds the files against the database's documented views.
func requireSame(t *testing.T, s *sqlitestore.Store, dir string) {
	t.Helper()
	entries := stored(t, s, `SELECT seq, session, n, entry, parent, type, coalesce(at, 0), timestamp, payload FROM v_entries`)
	require.Equal(t, entries, rowsOf[parquetexport.Entry](t, dir, "entries"))
	require.Equal(t, stored(t, s, `SELECT session, n, entry, parent, coalesce(at, 0), role, text, provider, model, stop_reason, tool, call, bytes FROM v_messages`),
		rowsOf[parquetexport.Message](t, dir, "messages"))
	require.Equal(t, stored(t, s, `SELECT at, session, n, entry, cwd, kind, class, provider, model, input, output, cache_read, cache_write, tokens, CAST(round(cost * 1e9) AS INTEGER) FROM v_usage`),
		rowsOf[parquetexport.Usage](t, dir, "usage"))
	require.Equal(t, stored(t, s, `SELECT at, session, n, entry, call, tool, iif(retry, 'true', 'false'), iif(failed, 'true', 'false'), iif(has_result, 'true', 'false'), millis, input_bytes, result_bytes FROM v_tool_calls`),
		rowsOf[parquetexport.ToolCall](t, dir, "tool_calls"))
}

// export exports, and gives what was not left as it was, in order.
func export(t *testing.T, s *sqlitestore.Store, dir string) (changed []string) {
	t.Helper()
	files, err := parquetexport.Export(t.Context(), s, dir, parquetexport.Options{})
	require.NoError(t, err)
	for _, f := range files {
		if f.State != parquetexport.Unchanged {
			changed = append(changed, fmt.Sprintf("%s %s %s %d", f.State, f.Table, f.Month, f.Rows))
		}
	}
	return changed
}

func TestAnExportHoldsWhatTheDatabaseHolds(t *testing.T) {
	s, dir := filled(t), filepath.Join(t.TempDir(), "new", "lake [1]*")
	require.Equal(t, []string{
		"written entries 2026-03 8", "written entries 2026-04 3", "written entries  2",
		"written messages 2026-03 8", "written messages 2026-04 3",
		"written usage 2026-03 2", "written usage 2026-04 1",
		"written tool_calls 2026-03 1",
	}, export(t, s, dir))
	requireSame(t, s, dir)
	require.Contains(t, rowsOf[parquetexport.Message](t, dir, "messages"),
		"a|2|a1|q1|1772359201000|assistant|one\ntwo ���|acme|coder|toolUse|||"+fmt.Sprint(stored(t, s, "SELECT bytes FROM v_entries WHERE session = 'a' AND n = 2")[0]))
	require.Empty(t, export(t, s, dir), "nothing is to be done")
}

func TestAnExportFollowsWhatChanges(t *testing.T) {
	s, dir := filled(t), t.TempDir()
	export(t, s, dir)
	a, err := s.Open(t.Context(), eventlog.Metadata{ID: "a"})
	require.NoError(t, err)
	for _, step := range []struct {
		name    string
		do      func() error
		changed []string
	}{
		{"an entry comes", func() error {
			_, err := a.Append(t.Context(), eventlog.MessageDraft(eventlog.UserMessage("May", march)).WithTime(march.AddDate(0, 2, 0)))
			return err
		}, []string{"written entries 2026-05 1", "written messages 2026-05 1"}},
		{"a branch is given up, in the fork too", func() error {
			fork, err := s.Open(t.Context(), eventlog.Metadata{ID: "fork"})
			if err != nil {
				return err
			}
			_, err1 := a.MoveTo(t.Context(), eventlog.At("r1"), nil)
			_, err2 := fork.MoveTo(t.Context(), eventlog.At("r1"), nil)
			return errors.Join(err1, err2)
		}, []string{"written entries 2026-03 10", "written usage 2026-03 2"}},
		{"the owner is deleted", func() error { return s.Delete(t.Context(), eventlog.Metadata{ID: "a"}) },
			[]string{"written entries 2026-03 5", "written entries 2026-04 2", "removed entries 2026-05 0", "written entries  1",
				"written messages 2026-03 4", "written messages 2026-04 2", "removed messages 2026-05 0",
				"written usage 2026-03 2", "written tool_calls 2026-03 1"}},
		{"a text is purged", func() error {
			_, err := s.PurgeText(t.Context(), "Make it faster.", false)
			return err
		}, []string{"written entries 2026-03 5", "written messages 2026-03 4"}},
		{"nothing", func() error { return nil }, nil},
		{"all goes", func() error {
			return errors.Join(s.Delete(t.Context(), eventlog.Metadata{ID: "fork"}), s.Delete(t.Context(), eventlog.Metadata{ID: "b"}))
		}, []string{"removed entries 2026-03 0", "removed entries 2026-04 0", "removed entries  0", "removed messages 2026-03 0", "removed messages 2026-04 0",
			"removed usage 2026-03 0", "removed usage 2026-04 0", "removed tool_calls 2026-03 0"}},
	} {
		require.NoError(t, step.do(), step.name)
		require.Equal(t, step.changed, export(t, s, dir), step.name)
		requireSame(t, s, dir)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A run that ends anywhere leaves whole files, and the next one goes on.
func TestAnExportGoesOnAfterItsEnd(t *testing.T) {
	s := filled(t)
	for stop := range 8 {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		files, err := parquetexport.Export(ctx, s, dir, parquetexport.Options{Each: func(parquetexport.File) {
			if n++; n > stop {
				cancel()
			}
		}})
		require.Len(t, files, n)
		if n < 8 {
			require.ErrorIs(t, err, context.Canceled)
		}
		cancel()
		// What a kill leaves.
		stray := filepath.Join(filepath.Dir(files[0].Path), ".export-123")
		require.NoError(t, os.WriteFile(stray, []byte("PAR1 half"), 0o600))
		require.Len(t, export(t, s, dir), 8-n)
		require.NoFileExists(t, stray)
		requireSame(t, s, dir)
	}
}

func TestAnExportLeavesAloneWhatIsNotItsOwn(t *testing.T) {
	s, dir := filled(t), t.TempDir()
	export(t, s, dir)
	path := filepath.Join(dir, "usage", "month=2026-03", "data.parquet")
	for name, text := range map[string]string{"another file": "not mine", "nothing": ""} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := parquetexport.Export(t.Context(), s, dir, parquetexport.Options{})
		require.ErrorIs(t, err, eventlog.ErrAlreadyExists, name)
		require.ErrorContains(t, err, path)
		still, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(still))
	}
	require.NoError(t, os.Remove(path))
	beside := filepath.Join(dir, "usage", "month=2026-04", "mine.txt")
	require.NoError(t, os.WriteFile(beside, nil, 0o600))
	require.NoError(t, s.Delete(t.Context(), eventlog.Metadata{ID: "b"}))
	require.Contains(t, export(t, s, dir), "written usage 2026-03 2")
	require.FileExists(t, beside)

	// Two take turns.
	_, err := parquetexport.Export(t.Context(), s, dir, parquetexport.Options{})
	require.NoError(t, err)
	busy := error(nil)
	require.NoError(t, os.Remove(path))
	_, err = parquetexport.Export(t.Context(), s, dir, parquetexport.Options{Each: func(parquetexport.File) {
		if busy == nil {
			_, busy = parquetexport.Export(t.Context(), s, dir, parquetexport.Options{})
		}
	}})
	require.NoError(t, err)
	require.ErrorIs(t, busy, eventlog.ErrBusy)
}

// The types are what is documented, and what other programs rely on.
func TestTheTypesOfAnExport(t *testing.T) {
	require.Equal(t, `message Usage {
	optional int64 at (TIMESTAMP(isAdjustedToUTC=true,unit=MILLIS));
	required binary session (STRING);
	required int64 n (INT(64,true));
	required binary entry (STRING);
	optional binary cwd (STRING);
	required binary kind (STRING);
	required binary class (STRING);
	optional binary provider (STRING);
	optional binary model (STRING);
	required int64 input (INT(64,true));
	required int64 output (INT(64,true));
	required int64 cache_read (INT(64,true));
	required int64 cache_write (INT(64,true));
	required int64 tokens (INT(64,true));
	required int64 cost (DECIMAL(18,9));
}`, parquet.SchemaOf(parquetexport.Usage{}).String())
	for table, row := range map[string]any{"entries": parquetexport.Entry{}, "messages": parquetexport.Message{}, "tool_calls": parquetexport.ToolCall{}} {
		require.Contains(t, parquet.SchemaOf(row).String(), "optional int64 at (TIMESTAMP(isAdjustedToUTC=true,unit=MILLIS));", table)
	}
}
