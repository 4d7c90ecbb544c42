package bench

import (
	"context"
	"errors"

	"github.com/sessiontree/sessiontree/bench/backend"
)

// sizes asks the stores what they take on the disk. One that has no disk is left
// out.
func (b *bed) sizes(ctx context.Context) (map[*contender]backend.Reply, error) {
	sizes := map[*contender]backend.Reply{}
	for _, c := range b.stores {
		r, err := c.do(ctx, backend.Request{Op: backend.Size})
		if errors.Is(err, errors.ErrUnsupported) {
			continue
		}
		if err != nil {
			return nil, err
		}
		sizes[c] = r
	}
	return sizes, nil
}

// disk tells the bytes an entry, and of ours those of the branch set alone. The
// limits hold more than the tree: they are not asked.
func (b *bed) disk(ctx context.Context) error {
	sizes, err := b.sizes(ctx)
	if err != nil {
		return err
	}
	all, set := b.measure("disk", BytesPerEntry), b.measure("disk-branch-set", BytesPerEntry)
	all.value = func(r backend.Reply) float64 { return float64(r.Bytes) }
	set.value = all.value
	for c, r := range sizes {
		if c.limit {
			continue
		}
		all.take(c, backend.Reply{Bytes: r.Bytes, Count: b.size})
		if r.Tables == nil || !c.Ours {
			continue
		}
		var bytes int64
		for table, n := range r.Tables {
			if backend.PartOf(table) == backend.BranchSet {
				bytes += n
			}
		}
		set.take(c, backend.Reply{Bytes: bytes, Count: b.size})
	}
	all.done()
	set.done()
	return nil
}
