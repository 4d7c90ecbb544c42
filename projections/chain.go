package projections

import "crypto/sha256"

// hashSize is how much of a SHA-256 is kept: enough that no two entries ever have
// the same by accident, at a third of the bytes of an index entry less.
const hashSize = 16

// ChainHash is what is stored with an entry: a hash of its payload and of the hash
// of the entry before it in its session, nil before the first. So an entry that was
// changed, or is missing, is found by reading the log.
func ChainHash(before []byte, payload string) []byte {
	if len(payload) >= BlobBytes { // a small one is hashed faster in one piece
		sum := sumOf(before, payload)
		return sum[:hashSize:hashSize]
	}
	buffer := make([]byte, 0, hashSize+len(payload))
	buffer = append(append(buffer, before...), payload...)
	sum := sha256.Sum256(buffer)
	return sum[:hashSize:hashSize]
}

// sumOf is SHA-256 over both, without a copy of a large payload.
func sumOf(before []byte, payload string) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(before)
	var piece [8 << 10]byte
	for rest := payload; rest != ""; {
		n := copy(piece[:], rest)
		h.Write(piece[:n])
		rest = rest[n:]
	}
	h.Sum(sum[:0])
	return sum
}
