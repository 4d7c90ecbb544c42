package bench

import (
	"errors"
	"slices"

	"github.com/sessiontree/sessiontree/bench/backend"
)

// present are the backends that can be opened here; of the others it says why
// not.
func present(all []backend.Backend) (here []backend.Backend, notRun []NotRun) {
	for _, b := range all {
		if b.Missing == "" {
			here = append(here, b)
		} else {
			notRun = append(notRun, NotRun{Backend: b.Name, Reason: b.Missing})
		}
	}
	return here, notRun
}

// leaveOut keeps the reason for which a store did not carry out an operation, if
// there is one: once a tree, since what follows from it fails alike.
func (b *bed) leaveOut(c *contender, operation, shape string, size int, err error) {
	var why *backend.NotRun
	if !errors.As(err, &why) {
		return // nothing that it could be asked
	}
	same := func(n NotRun) bool {
		return n.Backend == c.Name && n.Reason == why.Reason && n.Shape == shape && n.Size == size
	}
	if !slices.ContainsFunc(b.notRun, same) {
		b.notRun = append(b.notRun, NotRun{c.Name, operation, shape, size, why.Reason})
	}
}
