package older_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/older"
)

func TestVersion(t *testing.T) {
	for header, want := range map[string]string{
		`{}`:                 "1",
		`{"version":null}`:   "1",
		`{"version":2}`:      "2",
		`{"version":"2"}`:    "2",
		`{"version":""}`:     "0",
		`{"version":true}`:   "1",
		`{"version":[]}`:     "0",
		`{"version":"none"}`: "NaN",
		`{"version":{}}`:     "NaN",
		`{"version":3.5}`:    "3.5",
	} {
		assert.Equal(t, want, fmt.Sprint(older.Version(js.Trusted(header))), header)
	}
}

func TestHeaderLeadsBack(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"session","id":"x"}`:                `{"type":"session","id":"x","version":3}`,
		`{"version" : 1 , "id":"x", "version": "2"}`: `{"version" : 1 , "id":"x", "version": 3}`,
		`{ }`: `{ "version":3}`,
	} {
		made, back := older.Header(text)
		assert.Equal(t, want, made)
		assert.Equal(t, text, back.Apply(made))
	}
}

// Whatever an entry of version 1 holds, its text comes back.
func TestAChain(t *testing.T) {
	var c older.Chain
	var ids []string
	for i, r := range []struct{ text, want string }{
		{`{"type":"message","message":{"role":"hookMessage"}}`, `{"type":"message","message":{"role":"custom"},"id":"$1","parentId":null}`},
		{`{"id":5,"type":"compaction","firstKeptEntryIndex":1 ,"parentId":"old"}`, `{"id":"$2","type":"compaction" ,"parentId":"$1","firstKeptEntryId":"$1"}`},
		{`{"type":"compaction","firstKeptEntryIndex":3}`, `{"type":"compaction","id":"$3","parentId":"$2","firstKeptEntryId":"$3"}`},
		{`{"firstKeptEntryIndex":4,"type":"compaction"}`, `{"type":"compaction","id":"$4","parentId":"$3","firstKeptEntryId":"$4"}`},
		{`{"type":"compaction","firstKeptEntryIndex":6}`, `{"type":"compaction","id":"$5","parentId":"$4"}`},
		{`{"type":"compaction","firstKeptEntryIndex":0}`, `{"type":"compaction","id":"$6","parentId":"$5"}`},
		{`{"type":"compaction","firstKeptEntryIndex":1.5}`, `{"type":"compaction","id":"$7","parentId":"$6"}`},
		{`{"type":"compaction","firstKeptEntryIndex":"1"}`, `{"type":"compaction","firstKeptEntryIndex":"1","id":"$8","parentId":"$7"}`},
		{`{}`, `{"id":"$9","parentId":"$8"}`},
	} {
		e, back, err := c.Record(r.text, eventlog.CodingAgent.ParseEntry)
		require.NoError(t, err)
		ids = append(ids, e.ID())
		got := e.JSON()
		for j := len(ids); j > 0; j-- {
			got = strings.ReplaceAll(got, ids[j-1], fmt.Sprintf("$%d", j))
		}
		assert.Equal(t, r.want, got, "record %d", i+1)
		assert.Equal(t, r.text, back.Apply(e.JSON()))
	}
	c.Pass()
	inside, _, err := c.Inside(`{"type":"custom"}`, eventlog.CodingAgent.ParseEntry)
	require.NoError(t, err)
	assert.Equal(t, eventlog.At(ids[8]), inside.Parent())
	e, _, err := c.Record(`{"type":"compaction","firstKeptEntryIndex":11}`, eventlog.CodingAgent.ParseEntry)
	require.NoError(t, err)
	assert.Equal(t, inside.ID(), e.Parent().ID())
	assert.Equal(t, eventlog.At(e.ID()), eventlog.RefOf(e.Get("firstKeptEntryId")), "what was passed counts, what was inside does not")
}
