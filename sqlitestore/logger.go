package sqlitestore

import (
	"context"
	"log/slog"
)

// harmless is a host's log handler whose panics stop nobody: a record may be made in
// the middle of a commit, or in a goroutine of a view, where one would end the process.
type harmless struct{ slog.Handler }

// Handle implements [slog.Handler].
func (h harmless) Handle(ctx context.Context, r slog.Record) error {
	defer func() { _ = recover() }()
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h harmless) WithAttrs(attrs []slog.Attr) slog.Handler {
	return harmless{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h harmless) WithGroup(name string) slog.Handler { return harmless{h.Handler.WithGroup(name)} }
