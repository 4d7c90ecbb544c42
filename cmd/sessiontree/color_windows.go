package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// enableColor asks the console to read escape codes, which older ones do only
// when told to, and says whether it does.
func enableColor(f *os.File) bool {
	var mode uint32
	handle := windows.Handle(f.Fd())
	if windows.GetConsoleMode(handle, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(handle, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
