package jsonl

import (
	"slices"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/older"
)

// Migration says how a file of version 1 or 2 was brought to version 3, as the
// coding agent does it; the file itself is never written anew.
type Migration struct {
	From     js.Value // the header's version, absent or null for none
	IDsGiven bool     // every entry got an id, and the entry before it as parent
	Renamed  []int    // the lines whose message had the role hookMessage
}

// records are what of a file's lines counts as a record: all entries, but for those
// found inside lines that are none; and others.
type records struct {
	others []int // the entries that a record stands before that is none
	inside []int // the entries that were found in lines that are no records
}

// migrate brings the entries of versions 1 and 2 to version 3 (see package older).
func (c *Contents) migrate(r records, o Options) error {
	header := js.Trusted(c.Metadata.Header)
	from := older.Version(header)
	if !(from < 3) {
		return nil
	}
	c.Migrated = &Migration{From: header.Get("version"), IDsGiven: from < 2}
	before := slices.Clone(c.Entries)
	if from < 2 {
		if err := c.giveIDs(r, o); err != nil {
			return err
		}
	} else {
		for i, e := range c.Entries {
			c.Entries[i], _ = older.Roles(eventlog.CodingAgent, e)
		}
	}
	for i, e := range before {
		if c.Lines != nil && e.Message().Role() != c.Entries[i].Message().Role() {
			c.Migrated.Renamed = append(c.Migrated.Renamed, c.Lines[i])
		}
	}
	c.Metadata.Header, _ = older.Header(c.Metadata.Header)
	return nil
}

// giveIDs makes a chain of the entries of version 1.
func (c *Contents) giveIDs(r records, o Options) error {
	others, inside := map[int]int{}, map[int]bool{}
	for _, i := range r.others {
		others[i]++
	}
	for _, i := range r.inside {
		inside[i] = true
	}
	ids := []js.Value{{}} // by index of the record; absent behind the last
	for i, e := range c.Entries {
		if e.Value().Kind() != js.Object {
			return notASession(c.Metadata.Path, "version 1 has a record that is no object")
		}
		ids = append(ids, make([]js.Value, others[i])...)
		if !inside[i] {
			ids = append(ids, e.Get("id"))
		}
	}
	ids = append(ids, js.Value{})
	chain := &older.Chain{Source: o.Source}
	if o.Strict {
		chain.Later = func(index int) js.Value { return ids[min(index, len(ids)-1)] }
	}
	for i, e := range c.Entries {
		for range others[i] {
			chain.Pass()
		}
		take := chain.Record
		if inside[i] {
			take = chain.Inside
		}
		var err error
		if c.Entries[i], _, err = take(e.JSON(), eventlog.CodingAgent.ParseEntry); err != nil {
			return err
		}
	}
	return nil
}
