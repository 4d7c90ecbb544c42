package parquetexport

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/osfile"
)

const (
	// fingerprintKey is where a file has its fingerprint.
	fingerprintKey = "sessiontree.fingerprint"

	// groupBytes is how many bytes of rows are in memory before they are written.
	groupBytes = 16 << 20
	// batchRows is how many rows are handed over at once.
	batchRows = 256
)

// fingerprint is that of the rows in a file, "" if there is none.
func fingerprint(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err == nil {
		if text, ok := file.Lookup(fingerprintKey); ok {
			return text, nil
		}
	}
	return "", &eventlog.Error{Code: eventlog.AlreadyExists, Message: path + " is no file of an export, and is left alone", Err: err}
}

// writeFile writes a file that appears whole, and gives how many rows it has.
func writeFile[T any](path string, fill func(write func(T) error) (digest, error)) (rows int64, err error) {
	dir := filepath.Dir(path)
	if err := osfile.MakeDir(dir); err != nil {
		return 0, err
	}
	temp, err := os.CreateTemp(dir, tempPrefix+"*") // 0600
	if err != nil {
		return 0, err
	}
	defer os.Remove(temp.Name())
	w := newWriter[T](temp)
	p, err := fill(w.write)
	if err == nil {
		err = w.close(p)
	}
	if err == nil {
		err = temp.Sync()
	}
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return 0, err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return 0, err
	}
	return w.rows, osfile.SyncDir(dir)
}

// writer writes rows, in groups of bounded size.
type writer[T any] struct {
	*parquet.GenericWriter[T]
	batch  []T
	rows   int64
	bytes  int
	sizeOf func(*T) int
}

func newWriter[T any](f *os.File) *writer[T] {
	return &writer[T]{
		GenericWriter: parquet.NewGenericWriter[T](f, parquet.Compression(&zstd.Codec{}), parquet.CreatedBy("sessiontree", "", "")),
		batch:         make([]T, 0, batchRows),
		sizeOf:        sizeOf[T],
	}
}

func (w *writer[T]) write(row T) error {
	w.batch = append(w.batch, row)
	w.rows++
	w.bytes += w.sizeOf(&row)
	if len(w.batch) < batchRows && w.bytes < groupBytes {
		return nil
	}
	return w.hand()
}

// hand hands the batch over, and ends the group if it is large.
func (w *writer[T]) hand() error {
	if _, err := w.Write(w.batch); err != nil {
		return err
	}
	clear(w.batch)
	w.batch = w.batch[:0]
	if w.bytes < groupBytes {
		return nil
	}
	w.bytes = 0
	return w.Flush()
}

func (w *writer[T]) close(p digest) error {
	if err := w.hand(); err != nil {
		return err
	}
	w.SetKeyValueMetadata(fingerprintKey, p.String())
	return w.Close()
}

// sizeOf is about how many bytes a row has.
func sizeOf[T any](row *T) int {
	switch r := any(row).(type) {
	case *Entry:
		return len(r.Payload) + 200
	case *Message:
		return len(r.Text) + 200
	}
	return 200
}
