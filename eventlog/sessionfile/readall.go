package sessionfile

import (
	"io"

	"github.com/sessiontree/sessiontree/eventlog"
)

// ReadAll reads the entries of a file by the rules of the dialect that they tell,
// which stands in the metadata with what decided it.
func ReadAll(path string, r io.ReadSeeker, o Options) (m eventlog.Metadata, entries []eventlog.Entry, err error) {
	for o.Dialect = eventlog.CodingAgent; ; {
		f, err := NewReader(path, r, o)
		if err != nil {
			return m, nil, err
		}
		m, entries = f.Header().Metadata, nil
		for {
			item, err := f.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return m, nil, err
			}
			if !item.Partial {
				entries = append(entries, item.Entry)
			}
		}
		if m.Dialect, m.DialectBasis = f.Dialect(nil); m.Dialect == o.Dialect {
			return m, entries, nil
		}
		o.Dialect = m.Dialect
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return m, nil, &eventlog.Error{Code: eventlog.StorageFailed, Message: "Failed to read " + path, Err: err}
		}
	}
}
