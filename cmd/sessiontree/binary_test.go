package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// long makes the long forms of tests run.
var long = os.Getenv("SESSIONTREE_LONG") != ""

// program builds the program, once, as it is shipped.
var program = sync.OnceValues(func() (path string, err error) {
	dir, err := os.MkdirTemp("", "sessiontree-test-*")
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "sessiontree")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if said, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return path, fmt.Errorf("go build: %w\n%s", err, said)
	}
	return path, nil
})

// built is the program that was built, and says so to TestMain.
func built(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("the program is built and run in the whole run")
	}
	wasBuilt = true
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var wasBuilt bool

func TestMain(m *testing.M) {
	code := m.Run()
	if wasBuilt {
		path, _ := program()
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}
