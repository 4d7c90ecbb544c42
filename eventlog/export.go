package eventlog

import (
	"bufio"
	"context"
	"io"
	"strings"
)

// Export writes the session as a session file of version 3: the header as it
// came, then each entry as it came, a line each.
func (s *Session) Export(ctx context.Context, w io.Writer) error {
	m, err := s.storage.Metadata(ctx)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 1<<16)
	b.WriteString(m.Header)
	b.WriteByte('\n')
	for e, err := range s.storage.Entries(ctx, 0, All) {
		if err != nil {
			return err
		}
		// A newline in JSON text is white space between values; in a file of lines it
		// must not be.
		if strings.IndexByte(e.text, '\n') < 0 {
			b.WriteString(e.text)
		} else {
			b.WriteString(strings.ReplaceAll(e.text, "\n", " "))
		}
		if err := b.WriteByte('\n'); err != nil {
			return err
		}
	}
	return b.Flush()
}
