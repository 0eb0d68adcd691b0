package wire

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// BenchmarkTokens cuts a custom resource into tokens.
func BenchmarkTokens(b *testing.B) {
	data, err := os.ReadFile("../dedup/testdata/widget.json")
	if err != nil {
		b.Fatal(err)
	}
	data = bytes.ReplaceAll(data, []byte("$TIMEOUT"), []byte("1"))
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(compact.Len()))
	var z Tokens
	for b.Loop() {
		if !z.Read(compact.Bytes()) {
			b.Fatal("not read")
		}
	}
}
