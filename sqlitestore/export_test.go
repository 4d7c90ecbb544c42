package sqlitestore

// CacheUse says how often the branch of a leaf was asked for, was kept, and could
// be carried on; and how many bytes are kept.
func (s *Store) CacheUse() (asked, hits, grown int, size int64) {
	c := s.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked, c.hits, c.grown, c.size
}
