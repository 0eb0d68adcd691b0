package flight

import (
	"bytes"
	"errors"
	"os"
	"sort"
	"testing"
)

// TestLinesTakeMemory reads a recording with the least limit that suffices: short lines count with
// their size in memory.
func TestLinesTakeMemory(t *testing.T) {
	file, err := os.ReadFile("testdata/version-1.zip")
	if err != nil {
		t.Fatal(err)
	}
	readWith := func(limit int) (*Recording, error) {
		return read(bytes.NewReader(file), int64(len(file)), int64(limit))
	}
	least := sort.Search(maxBytes, func(limit int) bool {
		_, err := readWith(limit)
		return err == nil
	})
	if _, err := readWith(least - 1); !errors.Is(err, ErrFormat) {
		t.Errorf("with a byte less: %v", err)
	}
	recording, err := readWith(least)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, track := range recording.Tracks {
		lines += len(track.Base) + len(track.Records)
	}
	if lines == 0 || least < lines*lineBytes {
		t.Errorf("%d lines were read with a limit of %d bytes", lines, least)
	}
}
