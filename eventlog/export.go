package eventlog

import (
	"bufio"
	"context"
	"io"
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
		b.WriteString(e.Line())
		if err := b.WriteByte('\n'); err != nil {
			return err
		}
	}
	return b.Flush()
}
