package apisim

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// random generates all random values of a server, from one seed.
type random struct {
	mu     sync.Mutex // guards source
	source *rand.Rand
}

func newRandom(seed uint64) *random { return &random{source: rand.New(rand.NewPCG(seed, seed))} }

const (
	// nameLetters are the characters of a real server: no vowels, which could spell words, and no
	// digits that look like letters.
	nameLetters = "bcdfghjklmnpqrstvwxz2456789"
	// suffixLength is the number of characters that are appended to metadata.generateName.
	suffixLength = 5
	// longestPrefix is the number of characters of metadata.generateName that are kept, so that the
	// name is a DNS label.
	longestPrefix = 63 - suffixLength
)

func (r *random) name(prefix string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := []byte(prefix[:min(len(prefix), longestPrefix)])
	for range suffixLength {
		name = append(name, nameLetters[r.source.IntN(len(nameLetters))])
	}
	return string(name)
}

func (r *random) uid() types.UID {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], r.source.Uint64())
	binary.BigEndian.PutUint64(b[8:], r.source.Uint64())
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

// below returns a number from 0 to n-1.
func (r *random) below(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.IntN(n)
}

func (r *random) duration(from, to time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return from + time.Duration(r.source.Int64N(int64(to-from)))
}
