package eventlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/memory"
)

// FuzzDraft writes drafts of any fields. What is written is what a reader of its
// text finds there; what a reader would refuse, or take for another entry, is
// refused.
func FuzzDraft(f *testing.F) {
	const id, at = "a1", "2026-01-01T00:00:00.000Z"
	const user = `{"role":"user","content":"x"}`
	for _, d := range [][7]string{
		{"message", id, at, "message", user, "", ""},
		{"message", id, at, "message", ` {"role":"user"}`, "", ""},
		{"message", id, at, "message", `{"role":"user"} `, "", ""},
		{"message", id, at, "message", `{"role":"user"}}`, "", ""},
		{"message", id, at, "message", `{"role":"user"`, "", ""},
		{"message", id, at, "message", `{"role":"user","role":"assistant"}`, "", ""},
		{"message", id, at, "message", `{"content":1.0,"r\u006fle":"toolResult"}`, "", ""},
		{"message", id, at, "message", user, "message", `{"role":"assistant"}`},
		{"message", id, at, "message", `7`, "message", user},
		{"message", id, at, "message", user, "message", `null`},
		{"message", id, at, "message", user, "m\xff", `1`},
		{"message", id, at, "message", user, "id", `"twice"`},
		{"message", id, at, "parentId", `null`, "message", user},
		{"message", "", "", "message", user, "", ""},
		{"message", "\xff", at, "message", user, "", ""},
		{"message", "\"\\\n", at, "message", user, "", ""},
		{"message", id, "\xed\xa0\x80", "message", user, "", ""},
		{"message", id, "\xff", "message", user, "", ""},
		{"", id, at, "message", user, "", ""},
		{"unknown", id, at, "message", `[1,`, "", ""},
		{"unk\"nown", id, at, "message", user, "", ""},
		{"leaf", id, at, "targetId", `null`, "", ""},
		{"leaf", id, at, "targetId", `1`, "", ""},
		{"label", id, at, "targetId", `"root"`, "label", ` "x"`},
		{"label", id, at, "targetId", ` "root"`, "label", `7`},
		{"custom", id, at, "data", `1},{"a":1`, "customType", `"t"`},
		{"custom", id, at, "data", "{\"a\":\n1}", "message", `"no message"`},
		{"active_tools_change", id, at, "activeToolNames", `[]`, "activeToolNames", `{}`},
		{"session_info", id, at, "name", "\"\xff\"", "", ""},
	} {
		f.Add(d[0], d[1], d[2], d[3], d[4], d[5], d[6])
	}
	f.Fuzz(func(t *testing.T, typ, id, at, key1, value1, key2, value2 string) {
		s := eventlog.NewSession(memory.New(eventlog.Metadata{ID: "s"}, nil, memory.Options{}))
		root, err := s.Append(t.Context(), message("root").WithID("root"))
		require.NoError(t, err)
		fields := []js.Member{{Key: key1, Value: js.Trusted(value1)}, {Key: key2, Value: js.Trusted(value2)}}
		written, err := s.Append(t.Context(), eventlog.Draft{Type: eventlog.Type(typ), ID: id, Time: at, Fields: fields})
		after, headErr := s.Head(t.Context())
		require.NoError(t, headErr)
		if err != nil {
			require.Equal(t, eventlog.Head{Leaf: eventlog.At("root"), N: 1}, after)
		} else {
			e := written[0]
			again, err := eventlog.ParseEntry(e.JSON())
			require.NoError(t, err)
			require.Equal(t, again, e)
			require.Equal(t, []any{eventlog.Type(typ), root[0].LeafAfter()}, []any{e.Type(), e.Parent()})
			if id != "" {
				require.Equal(t, id, e.ID())
			}
			if at != "" {
				require.Equal(t, at, e.Timestamp())
			}
			id, at = e.ID(), e.Timestamp()
		}
		agent := eventlog.NewSession(memory.New(eventlog.Metadata{ID: "s", Dialect: eventlog.CodingAgent}, nil, memory.Options{}))
		if taken, err := agent.Append(t.Context(), eventlog.Draft{Type: eventlog.Type(typ), ID: id, Time: at, Fields: fields}); err == nil && !taken[0].IsMove() {
			again, err := eventlog.CodingAgent.ParseEntry(taken[0].JSON())
			require.NoError(t, err)
			require.Equal(t, again, taken[0])
		}
		text := js.Fields(append([]js.Member{
			{Key: "type", Value: js.Text(typ)}, {Key: "id", Value: js.Text(id)},
			{Key: "parentId", Value: js.Text("root")}, {Key: "timestamp", Value: js.Text(at)},
		}, fields...)...).JSON()
		if err == nil {
			require.Equal(t, text, written[0].JSON())
		} else if read, readErr := eventlog.ParseEntry(text); readErr != nil {
			require.True(t, eventlog.CodeOf(err) == eventlog.InvalidArgument || id == "" || at == "", "%v", err)
		} else if read.ID() == id && read.Parent() == eventlog.At("root") && read.Type() == eventlog.Type(typ) && read.Timestamp() == at {
			// What a reader takes is refused for what the fields hold, and no more.
			requires := map[eventlog.Type]bool{eventlog.TypeMessage: true, eventlog.TypeActiveToolsChange: true, eventlog.TypeLabel: true, eventlog.TypeSessionInfo: true, eventlog.TypeLeaf: true}
			require.True(t, requires[read.Type()] || typ == "" || id == "root", "%v", err)
		}
	})
}

// A draft is a host's to change until it is written.
func TestADraftThatWasChangedIsCheckedAgain(t *testing.T) {
	s := eventlog.NewSession(memory.New(eventlog.Metadata{ID: "s"}, nil, memory.Options{}))
	d := message("hello")
	d.Fields[0].Value = js.Trusted(d.Fields[0].Value.JSON() + "}")
	_, err := s.Append(t.Context(), d)
	require.ErrorIs(t, err, eventlog.ErrInvalidArgument)
	d.Fields[0].Value = js.Trusted(`{"role":"assistant","content":[]}`)
	written, err := s.Append(t.Context(), d)
	require.NoError(t, err)
	again, err := eventlog.ParseEntry(written[0].JSON())
	require.NoError(t, err)
	require.Equal(t, again, written[0])
}
