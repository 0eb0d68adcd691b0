package flight

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// keptDumps is the number of recordings that are kept in Options.Dir.
	keptDumps = 20
	// staleAfter is the age of a part of a recording that no process writes any more.
	staleAfter = time.Hour

	// The name of a recording is filePrefix, the time in the form of fileTime, and a number.
	filePrefix, fileTime = "tidings-", "20060102T150405Z"
	fileSuffix, partial  = ".zip", ".part"
)

// prune removes the oldest recordings in a directory, those of earlier processes included, and the
// unfinished ones of processes that have ended. Files that cannot be removed stay.
func prune(dir string) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var recordings []string
	for _, f := range files {
		name := f.Name()
		made, err := time.Parse(fileTime, timeOf(name))
		switch {
		case err != nil:
		case strings.HasSuffix(name, fileSuffix):
			recordings = append(recordings, name)
		case strings.HasSuffix(name, partial) && time.Since(made) > staleAfter:
			os.Remove(filepath.Join(dir, name)) //nolint:errcheck // see above
		}
	}
	slices.Sort(recordings) // by time
	for _, name := range recordings[:max(0, len(recordings)-keptDumps)] {
		os.Remove(filepath.Join(dir, name)) //nolint:errcheck // see above
	}
}

// timeOf returns the time in the name of a recording, "" for another file.
func timeOf(name string) string {
	rest, ours := strings.CutPrefix(name, filePrefix)
	if !ours {
		return ""
	}
	made, _, _ := strings.Cut(rest, "-")
	return made
}
