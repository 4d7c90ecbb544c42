package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	_ "time/tzdata" // Windows has none
)

// window is the flags that say which time a question is about, and in what zone.
type window struct {
	timezone, since, until string
}

// windowHelp documents the flags.
const windowHelp = `Days, weeks and months are those of your time zone, or of --timezone (a name such
as Europe/Berlin); on days on which the clocks are changed they have 23 or 25
hours. --since and --until take a day (2026-03-01), a month (2026-03), a time
(2026-03-01T12:00:00Z), or so many days back (7d: today and the six before). A
day or a month as --until is included.`

func (w *window) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.timezone, "timezone", "", "the time zone of days, as Europe/Berlin or UTC (default yours)")
	cmd.Flags().StringVar(&w.since, "since", "", "only from this day, month or time on, or 7d")
	cmd.Flags().StringVar(&w.until, "until", "", "only up to this day, month or time")
}

// read gives what the flags say.
func (w *window) read(now time.Time) (zone *time.Location, since, until time.Time, err error) {
	zone = time.Local
	if w.timezone != "" {
		if zone, err = time.LoadLocation(w.timezone); err != nil {
			return nil, since, until, fmt.Errorf("--timezone: there is no time zone %q", w.timezone)
		}
	}
	if since, _, err = moment(w.since, zone, now); err != nil {
		return nil, since, until, fmt.Errorf("--since: %w", err)
	}
	if _, until, err = moment(w.until, zone, now); err != nil {
		return nil, since, until, fmt.Errorf("--until: %w", err)
	}
	return zone, since, until, nil
}

// moment reads a day, a month, or a time: when it begins, and when the next one
// does. Nothing is the zero time.
func moment(text string, zone *time.Location, now time.Time) (from, to time.Time, err error) {
	if text == "" {
		return from, to, nil
	}
	if back, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(back); err == nil && n > 0 {
			y, m, d := now.In(zone).Date()
			from = time.Date(y, m, d-n+1, 0, 0, 0, 0, zone)
			return from, from.AddDate(0, 0, 1), nil
		}
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		return t, t.AddDate(0, 0, 1), nil
	}
	if t, err := time.ParseInLocation("2006-01", text, zone); err == nil {
		return t, t.AddDate(0, 1, 0), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, t, nil
	}
	return from, to, fmt.Errorf("%q is no day (2026-03-01), month (2026-03), time (2026-03-01T12:00:00Z) or number of days (7d)", text)
}

// zoneName is what a zone is called.
func zoneName(zone *time.Location, now time.Time) string {
	if zone != time.Local {
		return zone.String()
	}
	name, offset := now.In(zone).Zone()
	if offset == 0 {
		return "UTC"
	}
	return "local, " + name
}
