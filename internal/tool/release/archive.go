package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// largest is the largest size of a program.
const largest = 60_000_000

// platforms are the operating systems and processors that the command is built for.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

// build writes the archive and the SBOM of each platform, and their checksums.
func (r *release) build(ctx context.Context, clone string) error {
	seconds, err := output(ctx, clone, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return err
	}
	for _, platform := range platforms {
		if err := r.buildFor(ctx, clone, platform, time.Unix(unix, 0)); err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
	}
	return writeChecksums(r.out)
}

func (r *release) buildFor(ctx context.Context, clone, platform string, commit time.Time) error {
	system, processor, _ := strings.Cut(platform, "/")
	program := filepath.Join(clone, "bin", "tidings")
	environment := []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + processor}
	inClone := func(args ...string) (string, error) {
		return output(ctx, clone, "env", slices.Concat(environment, args)...)
	}
	_, err := inClone("go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", program,
		"./cmd/tidings")
	if err != nil {
		return err
	}
	dirs, err := inClone("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}{{end}}",
		"./cmd/tidings")
	if err != nil {
		return err
	}
	licences, err := licencesOf(dirs)
	if err != nil {
		return err
	}
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	if len(binary) > largest {
		return fmt.Errorf("the program has %d bytes, more than %d: look for what it links with",
			len(binary), largest)
	}
	archive, err := pack(commit, file{"tidings", 0o755, binary}, file{"LICENSES", 0o644, licences})
	if err != nil {
		return err
	}
	fmt.Printf("%s: the program has %.1f MB, the archive %.1f MB\n", platform,
		float64(len(binary))/1e6, float64(len(archive))/1e6)
	name := fmt.Sprintf("tidings_%s_%s_%s", strings.TrimPrefix(r.version, "v"), system, processor)
	sbom, err := filepath.Abs(filepath.Join(r.out, name+".cdx.json"))
	if err != nil {
		return err
	}
	_, err = output(ctx, clone, "go", "run", "-trimpath", cyclonedx, "bin", "-json", "-std", "-noserial",
		"-notimestamp", "-version", r.version, "-output", sbom, program)
	return errors.Join(err, os.WriteFile(filepath.Join(r.out, name+".tar.gz"), archive, 0o644))
}

// licenceFile matches the names of files with licences and notices.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([.-].*)?$`)

// licencesOf returns the licences and notices of modules: each line has a path, a tab and a
// directory.
func licencesOf(modules string) ([]byte, error) {
	var text bytes.Buffer
	lines := strings.FieldsFunc(modules, func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		path, dir, _ := strings.Cut(line, "\t")
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		found := false
		for _, entry := range entries {
			if entry.IsDir() || !licenceFile.MatchString(entry.Name()) {
				continue
			}
			licence, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&text, "==== %s: %s\n\n%s\n", path, entry.Name(), licence)
			found = true
		}
		if !found {
			return nil, fmt.Errorf("%s has no licence in %s", path, dir)
		}
	}
	return text.Bytes(), nil
}

// file is a file of an archive.
type file struct {
	name string
	mode int64
	data []byte
}

// pack returns an archive of files. The same files and time give the same bytes.
func pack(at time.Time, files ...file) ([]byte, error) {
	var packed bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{
			Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	err = errors.Join(archive.Close(), compressed.Close())
	return packed.Bytes(), err
}

// writeChecksums writes the SHA-256 of each file of a directory, as sha256sum does.
func writeChecksums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(data), entry.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(text.String()), 0o644)
}
