package flight

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/tidings-go/tidings/internal/engine/tape"
)

// Recording is the content of a file. source.Replay plays one of its tracks.
type Recording = tape.Recording

// Track is the recording of one informer, or of one of its namespaces.
type Track = tape.Track

const (
	// maxBytes bounds the memory of a recording that is read: its bytes after decompression, and
	// lineBytes for each line. A recorder of 16 MiB writes less than a tenth of it.
	maxBytes = 1 << 30
	// lineBytes is the memory of a short line.
	lineBytes = 512
	// maxIndex bounds the bytes of the index: a track takes about 300.
	maxIndex = 8 << 20
	// maxCauses is the largest number of known errors that an error wraps.
	maxCauses = 16
)

// ErrFormat is a file that is no recording, or one that is damaged.
var ErrFormat = errors.New("not a flight recording")

// Open reads a file that a [Recorder] has written. The error names the file, and the part of it
// that is damaged.
func Open(name string) (*Recording, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("flight: Open: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("flight: Open: %w", err)
	}
	recording, err := read(f, info.Size(), maxBytes)
	if err != nil {
		return nil, fmt.Errorf("flight: Open %s: %w", name, err)
	}
	return recording, nil
}

// Read reads a recording of size bytes, as [Open] does.
func Read(from io.ReaderAt, size int64) (*Recording, error) {
	recording, err := read(from, size, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("flight: Read: %w", err)
	}
	return recording, nil
}

// reader reads the parts of a file.
type reader struct {
	zip     *zip.Reader
	decoder *zstd.Decoder
	left    int64 // bytes that may still be read
}

func read(from io.ReaderAt, size, limit int64) (*Recording, error) {
	archive, err := zip.NewReader(from, size)
	if err != nil {
		return nil, fmt.Errorf("%w, or one that was cut off: %w", ErrFormat, err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	r := &reader{archive, decoder, limit}
	i, err := r.index()
	if err != nil {
		return nil, fmt.Errorf("part %s: %w", indexName, err)
	}
	recording := &Recording{Reason: i.Reason, Began: i.Began, Made: i.Made}
	for at, described := range i.Tracks {
		track, err := r.track(at+1, described)
		if err != nil {
			return nil, err
		}
		track.End = i.Made.Sub(i.Began)
		recording.Tracks = append(recording.Tracks, track)
	}
	return recording, nil
}

// index reads the index and checks the version of the format.
func (r *reader) index() (i index, err error) {
	part, err := r.zip.Open(indexName)
	if err != nil {
		return i, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	defer part.Close()                                         //nolint:errcheck // it was only read
	content, err := io.ReadAll(io.LimitReader(part, maxIndex)) // what is cut off is no JSON
	if err == nil {
		err = json.Unmarshal(content, &i)
	}
	switch {
	case err != nil:
		return i, fmt.Errorf("%w: %w", ErrFormat, err)
	case i.Format != formatName:
		return i, fmt.Errorf("%w: its format is %.40q", ErrFormat, i.Format)
	case i.Version != formatVersion:
		return i, fmt.Errorf("it has version %d of the format, and this program reads version %d: "+
			"use the version of tidings that wrote it", i.Version, formatVersion)
	}
	return i, nil
}

// Read reads bytes after decompression.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.decoder.Read(p)
	if tooMany := r.take(n); tooMany != nil {
		return 0, tooMany
	}
	return n, err
}

func (r *reader) take(n int) error {
	if r.left -= int64(n); r.left < 0 {
		return fmt.Errorf("%w: it holds more bytes than a recorder writes", ErrFormat)
	}
	return nil
}

func (r *reader) part(name string, parse func(from *bufio.Reader) error) error {
	wrong := func(err error) error {
		if !errors.Is(err, ErrFormat) {
			err = fmt.Errorf("%w: it is damaged: %w", ErrFormat, err)
		}
		return fmt.Errorf("part %s: %w", name, err)
	}
	part, err := r.zip.Open(name)
	if err != nil {
		return wrong(err)
	}
	defer part.Close() //nolint:errcheck // it was only read
	if err := r.decoder.Reset(part); err != nil {
		return wrong(err)
	}
	from := bufio.NewReader(r)
	if err := parse(from); err != nil {
		return wrong(err)
	}
	if _, err := from.ReadByte(); err != io.EOF {
		return wrong(errors.New("there is more in it than the index says"))
	}
	return nil
}

func (r *reader) track(number int, described indexTrack) (*Track, error) {
	t := &Track{
		Name: described.Name, Collection: described.Collection, BaseVersion: described.BaseVersion,
	}
	err := lines(r, partName(number, baseName), described.Base, func(line baseLine) error {
		t.Base = append(t.Base, tape.Object{
			Key: line.Key, Version: line.Version, UID: line.UID, Data: line.Object,
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	var sizes []int
	err = lines(r, partName(number, recordsName), described.Records, func(line recordLine) error {
		record, err := recordOf(line)
		if n := len(t.Records); n > 0 && isRest(&t.Records[n-1], &record) {
			record.Data = append(t.Records[n-1].Data, record.Data...)
			t.Records, sizes = t.Records[:n-1], sizes[:n-1]
		}
		t.Records, sizes = append(t.Records, record), append(sizes, line.Bytes)
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, r.part(partName(number, dataName), func(from *bufio.Reader) error {
		for i, size := range sizes {
			if size == 0 {
				continue
			}
			var data bytes.Buffer
			if _, err := io.CopyN(&data, from, int64(size)); err != nil { // it grows as they come
				return fmt.Errorf("the bytes of record %d: %w", i+1, err)
			}
			t.Records[i].Data = data.Bytes()
		}
		return nil
	})
}

// isRest reports whether a record has more objects of the answer that the record before it is of.
func isRest(before, r *tape.Record) bool {
	return before.Kind == tape.Page && before.More.Partial && before.Form == tape.Identity &&
		r.Kind == tape.Page && r.Form == tape.Identity
}

// lines reads a part that has so many lines of JSON.
func lines[L any](r *reader, name string, count int, add func(L) error) error {
	return r.part(name, func(from *bufio.Reader) error {
		for i := range count {
			line, err := from.ReadBytes('\n')
			var parsed L
			if err == nil {
				err = r.take(lineBytes)
			}
			if err == nil {
				err = json.Unmarshal(line, &parsed)
			}
			if err == nil {
				err = add(parsed)
			}
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				return fmt.Errorf("line %d of %d: %w", i+1, count, err)
			}
		}
		return nil
	})
}

// recordOf returns the record that a line describes, without its bytes.
func recordOf(line recordLine) (tape.Record, error) {
	r := tape.Record{
		At: line.At, Kind: line.Kind, Form: line.Form, Key: line.Key, Version: line.Version,
		LeftOut: line.LeftOut, More: line.More,
	}
	eventType := slices.Index(tape.EventTypes[:], line.Type)
	switch {
	case eventType < 0, (line.Kind == tape.Event) == (eventType == 0):
		return r, fmt.Errorf("a record of the kind %s and the type %.40q", line.Kind, line.Type)
	case line.Bytes < 0:
		return r, fmt.Errorf("it has %d bytes", line.Bytes)
	case line.Bytes > 0 && !slices.Contains(withBytes, line.Form):
		return r, fmt.Errorf("bytes in the form %q", line.Form)
	}
	r.Type = uint8(eventType)
	for _, item := range line.Items {
		r.Data = tape.AppendIdentity(r.Data, item[0], item[1], item[2], item[3])
	}
	if len(line.Items) > 0 && line.Form != tape.Identity {
		return r, fmt.Errorf("items in the form %q", line.Form)
	}
	err := checkMore(&r)
	return r, err
}

// withBytes are the forms of records that have data.
var withBytes = []tape.Form{tape.Protobuf, tape.JSON, tape.Encoded}

// checkMore returns an error if a record lacks a field that its kind needs.
func checkMore(r *tape.Record) error {
	more := r.More
	if more == nil {
		more = &tape.More{}
	}
	switch {
	case r.Kind == 0:
		return errors.New("a record without its kind")
	case (r.Kind == tape.List || r.Kind == tape.Watch) && more.Request == nil:
		return fmt.Errorf("a record of the kind %s without its request", r.Kind)
	case r.Kind == tape.Failed && more.Failure == nil:
		return fmt.Errorf("a record of the kind %s without its failure", r.Kind)
	case r.Kind == tape.Failed && len(more.Failure.Causes) > maxCauses:
		return fmt.Errorf("a failure with %d causes", len(more.Failure.Causes))
	case r.Kind == tape.Page:
		r.More = more
	}
	return nil
}
