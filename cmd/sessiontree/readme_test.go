package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The tree in the README is what the command prints of the demo's session.
func TestTheReadmeShowsTheDemosTree(t *testing.T) {
	dir := t.TempDir()
	if a := ask("demo", "--dir", dir); a.code != 0 {
		t.Fatal(a.stderr)
	}
	a := ask("tree", "--db", filepath.Join(dir, demoFile), "--session", demoSession, "--width", "80")
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), a.stdout) {
		t.Errorf("the README does not have this tree:\n%s", a.stdout)
	}
}
