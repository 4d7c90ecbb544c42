package conformance

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Rule names a way in which this module answers other than Pi, on purpose.
type Rule string

// The rules. Each is applied to any case that it fits, and to nothing else.
const (
	LoopsForever    Rule = "loops_forever → invalid_session"
	NewlineFirst    Rule = "append repairs the newline first"
	NamesEncoded    Rule = "names are encoded"
	ListsByCWD      Rule = "lists go by the exact cwd"
	DamagedListed   Rule = "damaged files are listed"
	NegativeWindows Rule = "negative windows are refused"
	BytesKept       Rule = "bytes are kept"
	ObjectMethods   Rule = "object methods are no projectors"
)

// Rules lists all rules.
func Rules() []Rule {
	return []Rule{LoopsForever, NewlineFirst, NamesEncoded, ListsByCWD, DamagedListed, NegativeWindows, BytesKept, ObjectMethods,
		LeafSurvives, ExistsAtOnce, NothingOnOpen, UnknownRefused, EntryOnce, BadEntryListed, ListsWholeLines, WritersTakeTurns, ForksMigrated}
}

// Why says in a sentence what Pi does and what is done instead.
func (r Rule) Why() string {
	switch r {
	case LoopsForever:
		return "Pi walks a cycle of parents without end; we say that the session is invalid."
	case NewlineFirst:
		return "Pi appends to a last line that lacks its newline and so destroys both; we write the newline first."
	case NamesEncoded:
		return "Pi puts ids and working folders into paths as they are; we encode them, one to one."
	case ListsByCWD:
		return "Pi lists a folder, which several working folders may share; we list the sessions of exactly that one."
	case DamagedListed:
		return "Pi leaves a file that is no session out of its lists; we list it with the reason, behind the others."
	case NegativeWindows:
		return "Pi takes negative window arguments as JavaScript's slice does; we refuse them."
	case BytesKept:
		return "Pi writes a fork's entries anew; we copy them byte for byte."
	case ObjectMethods:
		return "Pi takes a custom entry named constructor, toString and so on for one with a projector, and trips; for us it has none."
	case LeafSurvives:
		return "The coding agent forgets where the leaf was moved to when a session is closed; our store keeps it."
	case ExistsAtOnce:
		return "The coding agent writes no file before there is a conversation; we keep what was appended from the first append."
	case NothingOnOpen:
		return "The coding agent writes a header into an empty file, a newline behind a last line, and older versions anew, by opening them; we leave the file as it is."
	case UnknownRefused:
		return "The coding agent gives an unknown entry the branch of nothing and the context of the last entry; we say that it is not there."
	case EntryOnce:
		return "The coding agent shows the last entry of an id that stands twice in both places, and leaves out what only a cycle leads to; we show each entry once."
	case BadEntryListed:
		return "The coding agent leaves a session with one bad entry out of its lists; we list it."
	case ListsWholeLines:
		return "The coding agent's lists cut lines at a carriage return and at the Unicode line separators too, and miss messages; we count them."
	case WritersTakeTurns:
		return "Two managers of the coding agent do not see what the other writes; ours go on from the leaf that the other left."
	case ForksMigrated:
		return "The coding agent forks a file of an older version as it is, under a header of version 3; we fork what it is as version 3."
	}
	return ""
}

// What follows is Pi's own rules, as far as they are needed to see that what is
// expected is what Pi would answer.

// piSlice is entries.slice(after, after + limit).
func piSlice(ids []string, after, limit int, hasLimit bool) []string {
	n := len(ids)
	index := func(i int) int {
		if i < 0 {
			return max(n+i, 0)
		}
		return min(i, n)
	}
	start, end := index(after), n
	if hasLimit {
		end = index(after + limit)
	}
	if start >= end {
		return nil
	}
	return ids[start:end]
}

// piLog finds entries as Pi's map does: of an id that stands twice, the last.
type piLog map[string]eventlog.Entry

func newPiLog(entries []eventlog.Entry) piLog {
	log := make(piLog, len(entries))
	for _, e := range entries {
		log[e.ID()] = e
	}
	return log
}

// endless says whether getPathToRootOrCompaction(from) never returns. What is
// remembered does not change any more once a cycle was walked in full, so a walk
// that outlives that and another round has no end.
func (log piLog) endless(from string) bool {
	remembered := ""
	e, ok := log[from]
	for steps := 0; ok; steps++ {
		if steps > 3*len(log) {
			return true
		}
		if remembered != "" && e.ID() == remembered {
			return false
		}
		if e.Type() == eventlog.TypeCompaction {
			if e.Get("retainedTail").Truthy() {
				return false
			}
			remembered, _ = e.Get("firstKeptEntryId").Str()
		}
		if e.Parent().ID() == "" {
			return false
		}
		e, ok = log[e.Parent().ID()]
	}
	return false
}

// endlessUp says whether following parents alone never ends, as where what is
// left behind is collected.
func (log piLog) endlessUp(from string) bool {
	e, ok := log[from]
	for steps := 0; ok && e.Parent().ID() != ""; steps++ {
		if steps > len(log) {
			return true
		}
		e, ok = log[e.Parent().ID()]
	}
	return false
}

// piProjectors are the methods of JavaScript's objects, as they answer when Pi
// calls them as projectors: with something that cannot be spread, or with a
// text, whose characters become messages.
func piProjectors() eventlog.ContextOptions {
	trips := func(eventlog.Entry, int, []eventlog.Entry) ([]eventlog.Message, error) {
		return nil, eventlog.Errorf(eventlog.InvalidEntry, "not iterable")
	}
	spells := func(eventlog.Entry, int, []eventlog.Entry) (messages []eventlog.Message, err error) {
		for _, c := range "[object Object]" {
			messages = append(messages, eventlog.Message{Value: js.Text(string(c))})
		}
		return messages, nil
	}
	projectors := map[string]eventlog.Projector{"toString": spells, "toLocaleString": spells}
	for _, name := range []string{"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "valueOf", "__proto__", "__defineGetter__", "__defineSetter__"} {
		projectors[name] = trips
	}
	return eventlog.ContextOptions{Projectors: projectors}
}

var (
	endlessText = regexp.MustCompile(`^walk did not end within (\d+) lookups$`)
	entryID     = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?$`)
	systemText  = regexp.MustCompile(`^ENOENT: no such file or directory, open '<path>'$`)
	// accidentText is the text of a TypeError, where Pi passes it on as an error of
	// its own.
	accidentText = regexp.MustCompile(`^(Cannot read properties of (undefined|null) \(reading '\w+'\)|Cannot convert undefined or null to object|\(?[\w.?\[\]() -]+\)? is not (iterable|a function))$`)
	rangeText    = regexp.MustCompile(`^(Invalid (time value|(array|string) length|count value: -?\w+)|Maximum call stack size exceeded)$`)
	piLineText   = regexp.MustCompile(`^Invalid JSONL session file <path>: line (\d+) `)
)

// isEndless says whether an expected error is the one that stands for a walk
// that never returns. The vectors were made with a bound of 20,000 look-ups, and
// four more for each of a fork's entries.
func isEndless(name, code js.Value, message string, entries int) bool {
	m := endlessText.FindStringSubmatch(message)
	if !name.Is("EndlessWalk") || !code.Is("loops_forever") || m == nil {
		return false
	}
	bound, _ := strconv.Atoi(m[1])
	return bound == 20000+4*entries
}

// isAccident says whether an expected error is JavaScript tripping over a value,
// and none of Pi's own: one that the engine throws, with the words that it has
// for it.
func isAccident(name, code js.Value, message string) bool {
	if code.Kind() != js.Null {
		return false
	}
	return name.Is("TypeError") && accidentText.MatchString(message) || name.Is("RangeError") && rangeText.MatchString(message)
}

// piPath is where Pi puts a session below its folder, cleaned as its join does.
func piPath(cwd, createdAt, id string) string {
	dashes := strings.NewReplacer(":", "-", ".", "-")
	return path.Join(piDir(cwd), dashes.Replace(createdAt)+"_"+id+".jsonl")
}

func piDir(cwd string) string {
	if cwd != "" && (cwd[0] == '/' || cwd[0] == '\\') {
		cwd = cwd[1:]
	}
	return "--" + strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(cwd) + "--"
}
