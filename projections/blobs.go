package projections

import "context"

// BlobBytes is from how many bytes on a payload is a blob: kept beside the log, once
// for all forks and copies that have it. Such a text fills many pages of its own
// either way, so reading it from another table costs next to nothing more.
const BlobBytes = 64 << 10

// Stored gives what the columns blob and payload of an event get for a payload. A
// large one is kept as a blob, unless it is there already.
func Stored(ctx context.Context, tx *Tx, payload string) (blob, inline any, err error) {
	if len(payload) < BlobBytes {
		return nil, payload, nil
	}
	hash := sumOf(nil, payload)
	var key int64
	there, err := tx.Row(ctx, "SELECT key FROM blobs WHERE hash = ?", []any{hash[:]}, &key)
	if err != nil || there {
		return key, nil, err
	}
	r, err := tx.Exec(ctx, "INSERT INTO blobs (hash, text) VALUES (?, ?)", hash[:], payload)
	if err != nil {
		return nil, nil, err
	}
	key, err = r.LastInsertId()
	return key, nil, err
}
