//go:build unix

package machine

import (
	"syscall"
	"time"
)

// CPU is the processor time that this process has used; not ok where the system
// does not tell.
func CPU() (used time.Duration, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
