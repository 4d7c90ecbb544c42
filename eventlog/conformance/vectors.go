package conformance

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"io/fs"
)

// Packed from a folder of vectors by: go run pack.go -o testdata/vectors.zip FOLDER
//
//go:embed testdata/vectors.zip
var packed []byte

// The coding agent's, packed likewise.
//
//go:embed testdata/coding-agent.zip
var packedAgent []byte

// Vectors are the packed vectors of the harness: a folder for each group, and
// index.json.
func Vectors() fs.FS { return unpacked(packed) }

// AgentVectors are the packed vectors of the coding agent.
func AgentVectors() fs.FS { return unpacked(packedAgent) }

func unpacked(packed []byte) fs.FS {
	z, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		panic("conformance: the packed vectors are broken: " + err.Error()) // it is part of the program
	}
	return z
}
