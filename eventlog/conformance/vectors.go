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

// Vectors are the packed vectors: a folder for each group, and index.json.
func Vectors() fs.FS {
	z, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		panic("conformance: the packed vectors are broken: " + err.Error()) // it is part of the program
	}
	return z
}
