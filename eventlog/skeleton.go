package eventlog

import "context"

// Joint is an entry in which the shape of a tree shows: a root, a fork, a tip, a
// labelled entry, or the leaf.
type Joint struct {
	ID       string
	Type     Type
	Depth    int    // below its root
	Parent   int    // index of the nearest joint above it, -1 for a root
	Children int    // entries right below it: 0 for a tip, more than 1 for a fork
	Label    string // "" for none
	Active   bool   // on the way from the current leaf up to its root
	Leaf     bool   // the current leaf
	Gap      bool   // a root whose parent is not there
}

// Skeleton is a tree without what lies between its joints, and without payloads:
// what a picker of branches shows. Joints are in depth-first order, each before
// those below it.
type Skeleton []Joint

// Skeleton gives the tree's joints.
func (t *Tree) Skeleton() Skeleton {
	var s Skeleton
	above := make([]int, len(t.Nodes)) // the nearest joint at or above each node
	for i := range t.Nodes {
		n := &t.Nodes[i]
		parent := -1
		if n.Parent >= 0 {
			parent = above[n.Parent]
		}
		if n.Parent >= 0 && len(n.Children) == 1 && n.Label == "" && !n.Leaf {
			above[i] = parent
			continue
		}
		above[i] = len(s)
		s = append(s, Joint{n.Entry.ID(), n.Entry.Type(), n.Depth, parent, len(n.Children), n.Label, n.Active, n.Leaf, n.Gap})
	}
	return s
}

// Skeleton gives the joints of the session's tree. A backend that knows them
// without reading the log is asked; else the whole tree is made.
func (s *Session) Skeleton(ctx context.Context) (Skeleton, error) {
	if known, ok := s.storage.(interface {
		Skeleton(ctx context.Context) (Skeleton, bool, error)
	}); ok {
		if joints, ok, err := known.Skeleton(ctx); ok || err != nil {
			return joints, err
		}
	}
	t, err := s.Tree(ctx)
	if err != nil {
		return nil, err
	}
	return t.Skeleton(), nil
}
