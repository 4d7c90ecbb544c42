package query

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/terms"
)

// SearchOptions say what is searched for, and where.
type SearchOptions struct {
	// Text is what people type, any text, taken literally: entries are found that
	// have every word of it, in any order. Case, accents and the signs between words
	// do not matter; what is one word with signs inside (wrong-book) has to stand
	// together. Of a very long text the first 64 words count. A text without any
	// letter or digit finds nothing.
	Text string
	// Syntax takes Text for a query of FTS5: phrases in quotes, prefixes with *, AND,
	// OR, NOT, NEAR, and column filters by kind (label: done).
	Syntax bool
	Kinds  []eventlog.TextKind // in which texts; none: in all
	// Session is the id of the only session, "" for all.
	Session string
	// Rank puts the best hits first (bm25), and not the newest.
	Rank  bool
	Limit int // how many hits at most; 0 is 20
	// Before goes on behind a hit, the newest first: its Cursor. Skip does so where
	// the best come first, with its Cursor too.
	Before int64
	Skip   int
}

// Hit is an entry that was found. What forks share is found once, in the session that
// it was said in, or the one nearest to it that is there; a search in one session finds
// all that is in it.
type Hit struct {
	Session string // id
	Entry   string // id
	Type    eventlog.Type
	Role    string // of a message
	At      string // the entry's time as it has it
	Kind    eventlog.TextKind
	Live    bool // on the way from its session's leaf to the root; else abandoned
	// Snippet is a piece of the text around what was found, and Marks are the byte
	// ranges of that in it.
	Snippet string
	Marks   [][2]int
	Cursor  int64
}

// Search finds entries by their texts. It fails with [eventlog.ErrInvalidArgument]
// for a kind that does not exist and, where Syntax is set, for a query that FTS5
// does not understand; with [eventlog.ErrNotFound] for a session that is not there.
func Search(ctx context.Context, c Conn, o SearchOptions) ([]Hit, error) {
	for _, k := range o.Kinds {
		if !slices.Contains(eventlog.TextKinds(), k) {
			return nil, eventlog.Errorf(eventlog.InvalidArgument, "there is no kind of text %q", k)
		}
	}
	words, phrases := literal(o.Text)
	if o.Syntax {
		words, phrases = syntax(o.Text)
	}
	if words == "" {
		return nil, nil
	}
	match, err := o.match(ctx, c, words)
	if err != nil {
		return nil, err
	}
	page := page{SearchOptions: o, c: c, phrases: phrases, copies: map[int64]copied{}}
	if o.Rank {
		err = page.best(ctx, match)
	} else {
		err = page.newest(ctx, match)
	}
	if err != nil {
		return nil, err
	}
	return page.shown(ctx)
}

// match is the whole expression.
func (o SearchOptions) match(ctx context.Context, c Conn, words string) (string, error) {
	if len(o.Kinds) > 0 {
		columns := make([]string, len(o.Kinds))
		for i, k := range o.Kinds {
			columns[i] = string(k)
		}
		words = "{" + strings.Join(columns, " ") + "} : (" + words + ")"
	}
	if o.Session == "" {
		return words, nil
	}
	var key int64
	ok, err := c.Row(ctx, "SELECT key FROM sessions WHERE id = ?", []any{o.Session}, &key)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", eventlog.Errorf(eventlog.NotFound, "Session not found: %s", o.Session)
	}
	// As the projection writes it: projections.SessionTerm.
	return `"§` + string(js.AppendNumber(nil, float64(key))) + `" AND (` + words + ")", nil
}

// show chooses the text and the piece of it that shows most of what was searched.
func (h *Hit) show(e eventlog.Entry, kinds []eventlog.TextKind, phrases [][]string) {
	most := -1
	for _, t := range e.Texts() {
		if len(kinds) > 0 && !slices.Contains(kinds, t.Kind) {
			continue
		}
		marks := find(t.Text, phrases)
		if len(marks) > most {
			most = len(marks)
			h.Kind = t.Kind
			h.Snippet, h.Marks = snippet(t.Text, marks)
		}
	}
}

// SearchTime is the time of a hit; false if it has none that can be read.
func (h Hit) SearchTime() (time.Time, bool) {
	ms := js.ParseDate(h.At)
	if math.IsNaN(ms) {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(ms)).UTC(), true
}

// maxWords is how many words of a text count.
const maxWords = 64

// literal makes a query of what people type, and the phrases that are shown where
// they are found.
func literal(text string) (words string, phrases [][]string) {
	if len(text) > eventlog.MaxText {
		text = text[:eventlog.MaxText]
	}
	cut := terms.Cut(text)
	var all []string
	for len(cut) > 0 && len(phrases) < maxWords {
		end := 1
		for end < len(cut) && cut[end].Word == cut[0].Word && cut[end].Run == cut[0].Run && end < maxWords {
			end++
		}
		phrase, whole := phraseOf(text, cut[:end])
		all = append(all, whole)
		phrases = append(phrases, phrase)
		cut = cut[end:]
	}
	return strings.Join(all, " AND "), phrases
}

// phraseOf is the phrase of a run of terms, and the expression that finds it: also
// where it is written in one word that has no sign of its parts.
func phraseOf(text string, run []terms.Term) (phrase []string, expression string) {
	for _, t := range run {
		phrase = append(phrase, t.Text)
	}
	expression = `"` + strings.Join(phrase, " ") + `"`
	if joined := strings.Join(phrase, ""); len(run) > 1 && slices.Contains(terms.Wholes(text, run), joined) {
		expression = "(" + expression + ` OR "` + joined + `")`
	}
	return phrase, expression
}

// syntax makes a query of FTS5 of one in which words are as people write them:
// each becomes the phrase of its terms. Operators, columns and signs stay.
func syntax(text string) (query string, phrases [][]string) {
	var b strings.Builder
	word := func(s string) {
		cut := terms.Cut(s)
		if len(cut) == 0 {
			b.WriteString(`""`)
			return
		}
		var phrase []string
		for _, t := range cut {
			phrase = append(phrase, t.Text)
		}
		phrases = append(phrases, phrase)
		b.WriteString(`"` + strings.Join(phrase, " ") + `"`)
	}
	for i := 0; i < len(text); {
		if text[i] == '"' {
			end := i + 1
			for end < len(text) && (text[end] != '"' || end+1 < len(text) && text[end+1] == '"') {
				if text[end] == '"' {
					end++
				}
				end++
			}
			word(text[i+1 : min(end, len(text))])
			i = end + 1
			continue
		}
		end := i
		for end < len(text) && !strings.ContainsRune(" \t\r\n\"*:^(){}+,", rune(text[end])) {
			end++
		}
		if end == i {
			b.WriteByte(text[i])
			i++
			continue
		}
		switch s := text[i:end]; {
		case s == "AND" || s == "OR" || s == "NOT" || s == "NEAR", isColumn(s, text[end:]), isNumber(s) && strings.HasSuffix(strings.TrimRight(b.String(), " "), ","):
			b.WriteString(s)
		default:
			word(s)
		}
		i = end
	}
	return strings.TrimSpace(b.String()), phrases
}

// isColumn says whether a word names a column: in front of a colon, or in a list.
func isColumn(s, rest string) bool {
	if !slices.Contains(eventlog.TextKinds(), eventlog.TextKind(strings.TrimPrefix(s, "-"))) {
		return false
	}
	rest = strings.TrimLeft(rest, " ")
	if at := strings.IndexAny(rest, "{}"); at >= 0 && rest[at] == '}' {
		return true
	}
	return strings.HasPrefix(rest, ":")
}

func isNumber(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}
