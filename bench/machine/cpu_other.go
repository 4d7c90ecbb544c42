//go:build !unix

package machine

import "time"

// CPU is the processor time that this process has used; not ok here: Windows
// counts in ticks that are longer than most operations.
func CPU() (used time.Duration, ok bool) { return 0, false }
