package shape

import (
	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

func chain(b *builder) {
	for at := ""; b.more(); {
		at = b.plain(at)
	}
}

// compacted keeps the last ten entries before the compaction, as hosts do.
func compacted(b *builder) {
	const kept = 10
	at, cut := "", b.size*9/10
	for b.more() {
		if b.n == cut {
			at = b.add(eventlog.TypeCompaction, at, compaction(words(b.rng, textSize), ID(max(0, b.n-kept)))...)
			continue
		}
		at = b.plain(at)
	}
}

func compaction(summary, firstKept string) []js.Member {
	return []js.Member{
		field("summary", js.Text(summary)),
		field("firstKeptEntryId", js.Text(firstKept)),
		field("tokensBefore", js.Num(150_000)),
	}
}

func comb(b *builder) {
	for at := b.plain(""); b.more(); {
		b.plain(at) // dead
		at = b.plain(at)
	}
}

func star(b *builder) {
	for root := b.plain(""); b.more(); {
		b.plain(root)
	}
}

func balanced(b *builder) {
	const children = 4
	for b.plain(""); b.more(); {
		b.plain(ID((b.n - 1) / children))
	}
}

func walk(b *builder) {
	const back, far, steps = 50, 500, 20
	var way []int // from the root down to where the walk stands
	parents := []int{}
	for b.more() {
		switch {
		case len(way) > 0 && b.rng.IntN(far) == 0:
			way = way[:0]
			for at := b.rng.IntN(b.n); at >= 0; at = parents[at] {
				way = append(way, at)
			}
			for i, j := 0, len(way)-1; i < j; i, j = i+1, j-1 {
				way[i], way[j] = way[j], way[i]
			}
		case len(way) > 0 && b.rng.IntN(back) == 0:
			way = way[:max(1, len(way)-1-b.rng.IntN(steps))]
		}
		parent, id := -1, ""
		if len(way) > 0 {
			parent = way[len(way)-1]
			id = ID(parent)
		}
		way, parents = append(way, b.n), append(parents, parent)
		b.plain(id)
	}
}
