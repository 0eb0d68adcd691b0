package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestUpToDate compares the files in clientgo/informers with the output of the program.
func TestUpToDate(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(written) != 2 {
		t.Fatalf("%d files are written, want two", len(written))
	}
	for _, file := range written {
		want, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "clientgo", "informers", file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("clientgo/informers/%s is not what the program writes: run go generate in clientgo/informers", file.Name())
		}
	}
}

// TestUnknownNames checks that a name of one half of client-go that the other lacks ends
// the run.
func TestUnknownNames(t *testing.T) {
	if _, err := rowOf("CoreV9", "Pods"); err == nil {
		t.Error("a version that the clientset lacks is no error")
	}
	if _, err := rowOf("CoreV1", "Widgets"); err == nil {
		t.Error("a resource that the clientset lacks is no error")
	}
	if _, err := rowOf("AuthenticationV1", "TokenReviews"); err == nil {
		t.Error("a resource that cannot be read is no error")
	}
}
