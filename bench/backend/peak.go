package backend

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// peak is the most memory that the process has held at a time, as the system
// says. It fails with [errors.ErrUnsupported] where the system does not say it.
func peak() (Reply, error) {
	if runtime.GOOS != "linux" {
		return Reply{}, errors.ErrUnsupported
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return Reply{}, err
	}
	for line := range strings.Lines(string(status)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.Fields(kib)[0], 10, 64)
			return Reply{Bytes: n << 10}, err
		}
	}
	return Reply{}, errors.ErrUnsupported
}
