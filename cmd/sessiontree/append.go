package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

const appendLong = `append writes a message below the leaf of a session in the database, or below
another entry, and prints the new entry's id. The message is TEXT, or what stdin
has if TEXT is - (without the line's end that it closes with); with
--json-message it is the JSON object that stdin has: no value changes.

--at opens a branch, and the leaf goes there; root makes a new root. With --id
an append can be tried again: the same message once more changes nothing and
succeeds. That needs --json-message, since a text gets the time.

--lines appends many: each line of stdin is a message in JSON, or an object
{"message": …, "id": …, "at": …} of which only the message must be there; at is
the entry to append to, null for a new root. Each id is printed when its entry
is on the disk, so that it is known what a stop has left out; where the lines
have ids, all of them can simply be given again. It ends at the first line that
cannot be taken, and names it.

--json, with --lines for each line:
{` + writtenShape + `
}`

// maxInput bounds what is read from stdin. It is what a line of a session file
// may have.
const maxInput = 256 << 20

func (c *cli) appendCommand() *cobra.Command {
	var role, provider, model, at, id string
	var whole, lines bool
	var cmd *cobra.Command
	check := func(args []string) error {
		switch set := cmd.Flags().Changed; {
		case lines && len(args) > 0:
			return errors.New("--lines takes the messages from stdin: no TEXT beside it")
		case lines && (whole || set("role") || set("provider") || set("model") || set("at") || set("id")):
			return errors.New("--lines has all that is to be said in its lines: no --json-message, --role, --provider, --model, --at or --id beside it")
		case whole && len(args) > 0:
			return errors.New("--json-message takes the message from stdin: no TEXT beside it")
		case whole && (set("role") || set("provider") || set("model")):
			return errors.New("--json-message has its role and model: no --role, --provider or --model beside it")
		case role != eventlog.RoleUser && role != eventlog.RoleAssistant:
			return fmt.Errorf("--role is user or assistant, not %q", role)
		case role == eventlog.RoleUser && (set("provider") || set("model")):
			return errors.New("--provider and --model are of an assistant: --role assistant")
		case set("id") && (id == "" || id == rootName):
			return fmt.Errorf("--id is the id of an entry, not %q", id)
		case !whole && !lines && len(args) == 0:
			return errors.New("which text? - takes it from stdin")
		case len(args) > 1:
			return fmt.Errorf("one text, not %d", len(args))
		}
		return nil
	}
	cmd = c.writeCommand("append --session ID TEXT|-", "Append a message to a session in the database", appendLong, check, func(_ *database, s *source, args []string) error {
		if lines {
			return c.appendLines(s)
		}
		set := cmd.Flags().Changed
		if role == eventlog.RoleAssistant && !set("provider") && !set("model") && at != rootName {
			var err error
			if provider, model, err = c.modelAt(s, from(cmd, "at", at)); err != nil {
				return err
			}
		}
		m, err := c.message(whole, args, func(text string) eventlog.Message {
			if role == eventlog.RoleAssistant {
				return eventlog.AssistantMessage(text, provider, model, eventlog.Usage{}, time.Now())
			}
			return eventlog.UserMessage(text, time.Now())
		})
		if err != nil {
			return err
		}
		d := eventlog.MessageDraft(m).WithID(id)
		if set("at") {
			d = d.Under(entryOrRoot(at))
		}
		entries, err := s.Append(c.ctx, d)
		if err != nil {
			return err
		}
		c.written(s, entries[0].ID(), entries...)
		return nil
	})
	flags := cmd.Flags()
	flags.StringVar(&role, "role", eventlog.RoleUser, "who says it: user or assistant")
	flags.StringVar(&provider, "provider", "", "who runs the assistant's model (default as the branch says)")
	flags.StringVar(&model, "model", "", "the assistant's model, and the branch's from there on")
	flags.StringVar(&at, "at", "", "the entry to append to, or root (default the leaf)")
	flags.StringVar(&id, "id", "", "the new entry's id (default one that is free)")
	flags.BoolVar(&whole, "json-message", false, "take a whole message from stdin, as JSON")
	flags.BoolVar(&lines, "lines", false, "append the messages that stdin has, one in JSON a line")
	return cmd
}

// modelAt is the model that the branch of an entry, or of the leaf for none, sets.
func (c *cli) modelAt(s *source, at eventlog.Ref) (provider, model string, err error) {
	branch, err := s.Branch(c.ctx, at)
	if err != nil {
		return "", "", err
	}
	seen, err := s.Dialect().BuildContext(branch, eventlog.ContextOptions{})
	if err != nil || seen.Model == nil {
		return "", "", err
	}
	provider, _ = seen.Model.Provider.Str()
	model, _ = seen.Model.ID.Str()
	return provider, model, nil
}

// message is the message that append was given; say makes one of a text.
func (c *cli) message(whole bool, args []string, say func(text string) eventlog.Message) (eventlog.Message, error) {
	checked := func(text string) (eventlog.Message, error) {
		if kept, _ := js.Text(text).Str(); kept != text {
			return eventlog.Message{}, eventlog.Errorf(eventlog.InvalidArgument, "a message is text in UTF-8, and this is not")
		}
		return say(text), nil
	}
	if !whole && args[0] != "-" {
		return checked(args[0])
	}
	input, err := io.ReadAll(io.LimitReader(c.stdin, maxInput+1))
	switch {
	case err != nil:
		return eventlog.Message{}, fmt.Errorf("cannot read stdin: %w", err)
	case len(input) > maxInput:
		return eventlog.Message{}, eventlog.Errorf(eventlog.InvalidArgument, "stdin has more than %d bytes", maxInput)
	case whole:
		return eventlog.ParseMessage(string(input))
	}
	text, ended := strings.CutSuffix(string(input), "\n")
	if ended {
		text = strings.TrimSuffix(text, "\r")
	}
	return checked(text)
}
