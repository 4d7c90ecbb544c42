package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
)

const exportLong = `export writes a session of the database as a file: to stdout, or with --to into a
file or a folder. --all writes every session into a folder, under the names that
Pi gives them.

A session that was imported comes back as its file was, byte for byte, damaged
bytes included; what was appended here since follows. Others are written as Pi
writes them. --as changes the form:

  v3        a session file of version 3, whatever it was imported from, without
            what could not be read
  markdown  the active branch as a document, then the branches that were left
  html      one page of the tree that needs no other file and runs no script

A file that is there already is left alone if it holds the same, and is never
overwritten by something else.

--parquet DIR writes the database as Parquet files instead, for DuckDB, Spark,
ClickHouse and their kin: the tables entries, messages, usage and tool_calls,
partitioned by month (UTC) as Hive does, DIR/usage/month=2026-03/data.parquet.
Responses and calls are in them once, as in "usage". A second run writes only the
months in which anything is new or changed, and takes away those that have gone;
one that is killed goes on where it was. DIR belongs to one database.

  duckdb -c "SELECT model, sum(cost) FROM 'DIR/usage/*/*.parquet' GROUP BY model"

--json, with --to:
{
  "database": the file
  "files": [{"session", "file", "written" (false: it was there, the same), "error"
            ({"code", "message"}, or null)}]
}
--json, with --parquet:
{
  "database": the file
  "files": [{"table", "month" (2026-03, or null where times cannot be read), "file",
             "rows", "state" (written, unchanged or removed)}]
}`

func (c *cli) exportCommand() *cobra.Command {
	x := &exportRun{cli: c}
	var all bool
	var parquet string
	cmd := &cobra.Command{
		Use:   "export SESSION|--all|--parquet DIR",
		Short: "Write sessions of the database as files",
		Long:  exportLong,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("parquet"):
				return checkParquet(cmd, parquet, args)
			case all && len(args) > 0:
				return errors.New("a session or --all, not both")
			case all && x.to == "":
				return errors.New("into which folder? --to says so")
			case !all && len(args) != 1:
				return errors.New("which session? Its id, or the beginning of it; or --all")
			case !all && args[0] == "":
				return errors.New("SESSION is the id of a session, or its beginning, and not empty")
			case cmd.Flags().Changed("to") && x.to == "":
				return errors.New("--to is a file or a folder, and not empty")
			case c.json && x.to == "":
				return errors.New("--json tells of the files that are written: --to says where")
			case !slices.Contains(exportForms, x.form):
				return fmt.Errorf("--as is one of %s, not %q", strings.Join(exportForms, ", "), x.form)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return c.withDatabase(reads, func(d *database) error {
				x.d = d
				if parquet != "" {
					return c.exportParquet(d, parquet)
				}
				if all {
					return x.all()
				}
				return x.one(args[0])
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "every session")
	flags.StringVar(&x.form, "as", exportForms[0], "the form: "+strings.Join(exportForms, ", "))
	flags.StringVar(&parquet, "parquet", "", "write the whole database as Parquet files into this folder")
	flags.StringVar(&x.to, "to", "", "the file or the folder to write (default stdout)")
	return cmd
}

// exportForms are what --as takes; the first is the default.
var exportForms = []string{"imported", "v3", "markdown", "html"}

// exportRun is one run of export.
type exportRun struct {
	*cli
	d        *database
	form, to string
	files    []js.Value
	failed   int
}

// write writes one session in the form that was asked for.
func (x *exportRun) write(ctx context.Context, id string, w io.Writer) error {
	switch x.form {
	case "v3":
		return x.d.ExportV3(ctx, id, w)
	case "markdown":
		return x.page(id, w, writeMarkdown)
	case "html":
		return x.page(id, w, writeHTML)
	}
	return x.d.Export(ctx, id, w)
}

// tellLeaf says what a session file cannot hold: in the coding agent's dialect the
// leaf is kept by the store, and Pi takes such a file up at its last entry.
func (x *exportRun) tellLeaf(id string) error {
	if x.form != "imported" && x.form != "v3" {
		return nil
	}
	s, err := x.d.session(x.ctx, id)
	if err != nil {
		return err
	}
	defer s.Close()
	head, err := s.Head(x.ctx)
	if err != nil || s.meta.Dialect.LogsMoves() || head.N == 0 {
		return nil // a leaf that is not there is told by other commands
	}
	for last, err := range s.Entries(x.ctx, head.N-1, 1) {
		if err != nil {
			return err
		}
		if at := eventlog.At(last.ID()); at != head.Leaf {
			x.complain(fmt.Sprintf("session %s: its leaf %s is not in the file, which Pi would misread: Pi goes on from %s", shownID(id), head.Leaf, at))
		}
	}
	return nil
}

// page writes what is made of the tree.
func (x *exportRun) page(id string, w io.Writer, write func(io.Writer, *treeView) error) error {
	s, err := x.d.session(x.ctx, id)
	if err != nil {
		return err
	}
	defer s.Close()
	v, err := x.viewTree(s)
	if err != nil {
		return err
	}
	return write(w, v)
}

func (x *exportRun) one(id string) error {
	s, err := x.d.session(x.ctx, id)
	if err != nil {
		return err
	}
	defer s.Close()
	if x.to == "" {
		if err := x.write(x.ctx, s.meta.ID, x.out); err != nil {
			return err
		}
		return x.tellLeaf(s.meta.ID)
	}
	path := x.to
	if info, err := os.Stat(x.to); err == nil && info.IsDir() {
		path = x.path(s.meta)
	}
	if err := x.file(s.meta.ID, path); err != nil {
		return err
	}
	x.answer()
	return nil
}

func (x *exportRun) all() error {
	listed, err := x.d.List(x.ctx, "")
	if err != nil {
		return err
	}
	for _, l := range listed {
		err := x.file(l.ID, x.path(l.Metadata))
		switch {
		case x.ctx.Err() != nil:
			return x.ctx.Err()
		case eventlog.CodeOf(err) == eventlog.NotFound && !errors.Is(err, fs.ErrNotExist):
			// deleted meanwhile
		case err != nil:
			x.failed++
			x.tell(l.ID, x.path(l.Metadata), false, err)
		}
	}
	x.answer()
	if x.failed > 0 {
		return errFailed
	}
	return nil
}

// path is where a session goes in the folder.
func (x *exportRun) path(m eventlog.Metadata) string {
	dir, name := jsonl.PiPath(m)
	if ending, ok := map[string]string{"markdown": ".md", "html": ".html"}[x.form]; ok {
		name = strings.TrimSuffix(name, ".jsonl") + ending
	}
	return filepath.Join(x.to, dir, name)
}

// file writes a session into a file that appears whole or not at all.
func (x *exportRun) file(id, path string) error {
	written, err := newFile(path, func(w io.Writer) error { return x.write(x.ctx, id, w) })
	if err == nil {
		x.tell(id, path, written, nil)
		err = x.tellLeaf(id)
	}
	return err
}

func (x *exportRun) tell(id, path string, written bool, err error) {
	if !x.json {
		switch {
		case err != nil:
			x.complain(fileError(path, err).Error())
		case written:
			x.out.line(safe(path))
		default:
			x.out.line(safe(path) + " (was there)")
		}
		return
	}
	failure := js.NullValue()
	if err != nil {
		failure = js.Fields(field("code", js.Text(codeOf(err))), field("message", js.Text(err.Error())))
	}
	x.files = append(x.files, js.Fields(
		field("session", js.Text(id)), field("file", js.Text(path)), field("written", js.Boolean(written)), field("error", failure)))
}

func (x *exportRun) answer() {
	if x.json {
		x.out.answerJSON(js.Fields(field("database", js.Text(x.d.path)), field("files", js.List(x.files...))))
	}
}

// sameContents says whether two files hold the same bytes.
func sameContents(a, b string) (bool, error) {
	x, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer x.Close()
	y, err := os.Open(b)
	if err != nil {
		return false, err
	}
	defer y.Close()
	left, right := make([]byte, 1<<16), make([]byte, 1<<16)
	for {
		n, errX := io.ReadFull(x, left)
		m, errY := io.ReadFull(y, right)
		if !bytes.Equal(left[:n], right[:m]) {
			return false, nil
		}
		if errX != nil || errY != nil {
			if isEnd(errX) && isEnd(errY) {
				return true, nil
			}
			return false, errors.Join(errX, errY)
		}
	}
}

func isEnd(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }
