package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
)

// archive is a file that holds the state of a server.
type archive struct {
	path string
	// kept is the version that the file holds; "" is none that this process has written.
	kept string
}

// claim refuses a file that is not to be overwritten: whatever is there, but for the state
// that the server goes on from.
func (a *archive) claim(restored string) error {
	there, err := os.Stat(a.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--save: %w", err)
	case !there.Mode().IsRegular():
		return fmt.Errorf("--save %s is not a file: name one, which need not be there", a.path)
	}
	if restored != "" {
		if from, err := os.Stat(restored); err == nil && os.SameFile(from, there) {
			return nil
		}
	}
	return fmt.Errorf("--save %s is there already: go on from it with --restore %[1]s, or remove it, or name another file", a.path)
}

// keep writes a state, unless the file holds it. The file is replaced when all is written:
// it is whole at any time.
func (a *archive) keep(state *apisim.Snapshot) error {
	if a.kept == state.ResourceVersion() {
		return nil
	}
	err := replaceFile(a.path, state)
	if err != nil {
		return fmt.Errorf("the state cannot be saved in %s: %w: --save needs a directory that is there and can be written to", a.path, problem.Without("apisim: the snapshot cannot be written: ", err))
	}
	a.kept = state.ResourceVersion()
	return nil
}

// replaceFile writes a new file that only its owner can read, as there may be secrets in
// it, and gives it the name.
func replaceFile(path string, state *apisim.Snapshot) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-")
	if err != nil {
		return err
	}
	_, err = state.WriteTo(file)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// restore brings the state of a file to a server.
func restore(server *apisim.Server, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("--restore: %w: name a file that --save has written", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	state, err := server.ReadSnapshot(file)
	if err != nil {
		return fmt.Errorf("--restore %s: %w: name a file that --save has written", path, problem.Without("apisim: the snapshot cannot be read: ", err))
	}
	server.Rewind(state)
	return nil
}
