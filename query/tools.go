package query

import (
	"context"
	"strings"
)

// ToolSpend says how a tool was used. Each call counts once, whatever forks and
// copies hold it.
type ToolSpend struct {
	Name        string
	Calls       int64
	Failed      int64 // whose result says that it is an error
	Retries     int64 // whose tool's last call before, in the session, had failed
	NoResult    int64 // that have no result
	InputBytes  int64 // of the arguments, as JSON
	ResultBytes int64 // of the content of the results, as JSON
	Millis      int64 // from the messages that call to the results, summed
}

// dayMillis is the width of the days, of UTC, by which the view has sums of calls.
const dayMillis = 24 * 60 * 60 * 1000

// Where the calls are summed from: the sums of whole days, and for what a bound cuts
// off a day the rows.
const (
	toolSumsSQL = `SELECT r.tool, r.calls, r.failed, r.retries, r.no_result, r.input_bytes, r.result_bytes, r.millis FROM tool_sums r WHERE `
	toolRowsSQL = `SELECT r.tool, 1 AS calls, r.failed, r.retry AS retries, r.result_seq IS NULL AS no_result, r.input_bytes, r.result_bytes,
	CASE WHEN r.result_at > r.at AND r.at > 0 THEN r.result_at - r.at ELSE 0 END AS millis FROM tool_calls r WHERE r.counted = 1 AND r.at >= ? AND r.at < ?`
)

// Tools says how each tool was used, the most called first.
func Tools(ctx context.Context, c Conn, o WorkOptions) (all []ToolSpend, err error) {
	name, err := names(ctx, c, "SELECT key, name FROM tools")
	if err != nil {
		return nil, err
	}
	text, args := o.toolsSQL()
	rows, err := c.Rows(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var t ToolSpend
		var key int64
		if err := rows.Scan(&key, &t.Calls, &t.Failed, &t.Retries, &t.NoResult, &t.InputBytes, &t.ResultBytes, &t.Millis); err != nil {
			return nil, err
		}
		t.Name = name(key)
		all = append(all, t)
	}
	return all, rows.Err()
}

// toolsSQL is the query of a report about tools.
func (o WorkOptions) toolsSQL() (text string, args []any) {
	whose, of := o.whose()
	var parts []string
	add := func(part string, bounds ...any) {
		parts, args = append(parts, part+whose), append(append(args, bounds...), of...)
	}
	since, until := o.millis()
	first, last := (since+dayMillis-1)/dayMillis, until/dayMillis // whole days: from first on, before last
	switch {
	case since < 0 && until == noBound:
		add(toolSumsSQL + "true")
	case first >= last:
		add(toolRowsSQL, since, until)
	default:
		add(toolSumsSQL+"r.day >= ? AND r.day < ?", first, last)
		if since < first*dayMillis {
			add(toolRowsSQL, since, first*dayMillis)
		}
		if until < noBound && last*dayMillis < until {
			add(toolRowsSQL, last*dayMillis, until)
		}
	}
	return "SELECT tool, sum(calls), sum(failed), sum(retries), sum(no_result), sum(input_bytes), sum(result_bytes), sum(millis) FROM (\n" +
		strings.Join(parts, "\nUNION ALL ") + "\n) part GROUP BY 1 ORDER BY 2 DESC, 1", args
}
