package query

import (
	"database/sql"
	"sync"

	"github.com/sessiontree/sessiontree/eventlog"
)

// chunk is how many payloads are read before they are handed over: reading the
// next ones and looking into these are about equally slow, so branches are read
// on two processors.
const chunk = 128

// Entries gives the entries of a dialect that rows of one column, the payload,
// hold, and closes rows.
func Entries(rows *sql.Rows, d eventlog.Dialect) ([]eventlog.Entry, error) {
	defer rows.Close()
	var chunks [][]eventlog.Entry
	var parsers sync.WaitGroup
	defer parsers.Wait()
	total := 0
	payloads := make([]string, 0, 16)
	parse := func(payloads []string, entries []eventlog.Entry) {
		for i, p := range payloads {
			entries[i] = d.TrustedEntry(p)
		}
	}
	for rows.Next() {
		var payload string
		if err := rows.Scan(&payload); err != nil {
			return nil, err
		}
		if payloads = append(payloads, payload); len(payloads) == chunk {
			full, entries := payloads, make([]eventlog.Entry, chunk)
			chunks, total = append(chunks, entries), total+chunk
			parsers.Go(func() { parse(full, entries) })
			payloads = make([]string, 0, chunk)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	last := make([]eventlog.Entry, len(payloads))
	parse(payloads, last)
	if len(chunks) == 0 {
		return last, nil
	}
	parsers.Wait()
	all := make([]eventlog.Entry, 0, total+len(last))
	for _, entries := range chunks {
		all = append(all, entries...)
	}
	return append(all, last...), nil
}
