package source

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func delimited(frames ...string) []byte {
	var b []byte
	for _, f := range frames {
		b = binary.BigEndian.AppendUint32(b, uint32(len(f)))
		b = append(b, f...)
	}
	return b
}

func objects() splitter { return &jsonObjects{} }
func lengths() splitter { return lengthDelimited{} }

// readFrames reads until an error and returns the frames before it.
func readFrames(f *frames) (got []string, err error) {
	for {
		frame, err := f.next(true)
		if err != nil {
			return got, err
		}
		got = append(got, string(frame))
	}
}

// An error of the connection within a frame is that error, and no cut frame.
func TestErrorOfTheConnectionWithinAFrame(t *testing.T) {
	broken := errors.New("broken")
	body := io.MultiReader(strings.NewReader(`{"a":`), iotest.ErrReader(broken))
	if _, err := readFrames(newFrames(body, objects(), 1<<20)); !errors.Is(err, broken) || errors.Is(err, ErrCutFrame) {
		t.Errorf("got %v, want the connection's error", err)
	}
}

func TestFramesAreCutWhateverTheReadsBring(t *testing.T) {
	long := `{"s":"` + strings.Repeat("x", 3*initialBuffer) + `"}`
	want := []string{`{"a":{"b":[1,2]}}`, long, `{"quote":"a \" } \\"}`, `{}`}
	encodings := map[string]struct {
		splitter func() splitter
		data     []byte
	}{
		"json":             {objects, []byte(strings.Join(want, "\n") + "\n")},
		"json, no newline": {objects, []byte(strings.Join(want, ""))},
		"json, spaced out": {objects, []byte("\n\t " + strings.Join(want, "\r\n  ") + "\n\n")},
		"length-delimited": {lengths, delimited(want...)},
	}
	readers := map[string]func(io.Reader) io.Reader{
		"whole":        func(r io.Reader) io.Reader { return r },
		"byte by byte": iotest.OneByteReader,
		"half":         iotest.HalfReader,
		"data and EOF": iotest.DataErrReader,
	}
	for encoding, e := range encodings {
		for how, reader := range readers {
			t.Run(encoding+"/"+how, func(t *testing.T) {
				got, err := readFrames(newFrames(reader(bytes.NewReader(e.data)), e.splitter(), 1<<20))
				if err != io.EOF {
					t.Errorf("the end of the stream is %v, want io.EOF", err)
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("got %d frames, want %d: %.200q", len(got), len(want), got)
				}
			})
		}
	}
}

func TestFrameErrorsSayWhatWasReceived(t *testing.T) {
	tests := map[string]struct {
		splitter func() splitter
		data     []byte
		want     error
		says     string
	}{
		"json cut":              {objects, []byte(`{"type":"ADDED","obj`), ErrCutFrame, "after 20 bytes"},
		"length cut":            {lengths, []byte{0, 0, 1}, ErrCutFrame, "after 3 bytes"},
		"content cut":           {lengths, delimited("hello")[:7], ErrCutFrame, "after 7 bytes"},
		"json garbage":          {objects, []byte("<html>gateway</html>"), ErrMalformed, "of markup"},
		"json garbage later":    {objects, []byte("{}\n]"), ErrMalformed, "received 1 bytes"},
		"json too large":        {objects, []byte(`{"a":"` + strings.Repeat("x", 200) + `"}`), ErrFrameTooLarge, "100"},
		"json endless":          {objects, []byte(`{"a":"` + strings.Repeat("x", 1<<17)), ErrFrameTooLarge, "100"},
		"protobuf too large":    {lengths, delimited(strings.Repeat("x", 200)), ErrFrameTooLarge, "204"},
		"protobuf absurd":       {lengths, []byte{0xff, 0xff, 0xff, 0xff, 1}, ErrFrameTooLarge, "4294967299"},
		"json within protobuf":  {lengths, []byte(`{"type":"ADDED"}`), ErrFrameTooLarge, "limit"},
		"white space then cut ": {objects, []byte("\n\n {"), ErrCutFrame, "after 1 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := readFrames(newFrames(bytes.NewReader(test.data), test.splitter(), 100))
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got error %q, want one that is %q and says %q", err, test.want, test.says)
			}
		})
	}
}

func TestFramesWithoutWaitReadNothing(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	f := newFrames(r, objects(), 100)
	go func() { _, _ = w.Write([]byte(`{"a":1}{"b":2}{"c"`)) }() // the pipe ends with the test
	for _, want := range []string{`{"a":1}`, `{"b":2}`} {
		if frame, err := f.next(want == `{"a":1}`); string(frame) != want || err != nil {
			t.Fatalf("got %q, %v, want %q", frame, err, want)
		}
	}
	if frame, err := f.next(false); frame != nil || err != nil {
		t.Errorf("half a frame gave %q, %v, want nothing", frame, err)
	}
}

func TestFramesGiveALargeBufferBack(t *testing.T) {
	large := `{"s":"` + strings.Repeat("x", 2*retainedBuffer) + `"}`
	f := newFrames(strings.NewReader(large+"{}"+strings.Repeat(" ", initialBuffer)), objects(), 8<<20)
	if _, err := readFrames(f); err != io.EOF {
		t.Fatal(err)
	}
	if len(f.buf) > initialBuffer {
		t.Errorf("the buffer has %d bytes after a large frame, want %d", len(f.buf), initialBuffer)
	}
}

// Data that cannot become a JSON object ends the stream when it is read, not when its braces are
// balanced, which the events behind it may never do.
func TestMalformedFrameEndsTheStreamAtOnce(t *testing.T) {
	event := `{"type":"ADDED","object":{"kind":"Pod"}}` + "\n"
	for _, begin := range []string{"{", "{[", `{"type":"ADDED","object":{"kin`, "{1", `{"type":[`} {
		f := newFrames(iotest.OneByteReader(strings.NewReader(begin+"\n"+event+event)), objects(), 1<<20)
		got, err := readFrames(f)
		if len(got) > 0 || !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: read %q and the error %v, want ErrMalformed", begin, got, err)
		}
		if read := f.end; read > 2*(len(begin)+len(event)) {
			t.Errorf("%s: noticed after %d bytes", begin, read)
		}
	}
}

// A frame may be cut off anywhere: in a number, a word, an escape or a character.
func TestBeginningOfAFrameIsJSON(t *testing.T) {
	frame := []byte(`{"a":[1,-2.5e-7,true,false,null],"b":"x\u00e9\\\"ÿ😀","c":{"d":{}}}`)
	for end := 1; end <= len(frame); end++ {
		if !beginsJSON(frame[:end]) {
			t.Errorf("%q is refused", frame[:end])
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte(`{"a":1}`+"\n"+`{"b":"}"}`), false)
	f.Add(delimited("one", "", "three"), true)
	f.Add([]byte{0, 0, 0, 200}, true)
	f.Add([]byte(`{"a":1}{abc}`), false)
	f.Fuzz(func(t *testing.T, data []byte, binary bool) {
		split := objects
		if binary {
			split = lengths
		}
		read := func(r io.Reader) (got []string, err error) {
			got, err = readFrames(newFrames(r, split(), 100))
			// A frame that is not JSON ends the stream: here, or in the decoder if it was read at
			// once.
			isGarbage := func(frame string) bool { return !binary && !json.Valid([]byte(frame)) }
			if i := slices.IndexFunc(got, isGarbage); i >= 0 {
				return got[:i], ErrMalformed
			}
			return got, err
		}
		whole, wholeErr := read(bytes.NewReader(data))
		slow, slowErr := read(iotest.OneByteReader(bytes.NewReader(data)))
		// Where both end in garbage, they may quote different parts of it.
		if fmt.Sprint(whole) != fmt.Sprint(slow) || (wholeErr == io.EOF) != (slowErr == io.EOF) {
			t.Errorf("read at once: %q, %v\nread slowly: %q, %v", whole, wholeErr, slow, slowErr)
		}
		for _, frame := range whole {
			if len(frame) > 100 {
				t.Errorf("a frame of %d bytes passed the limit", len(frame))
			}
		}
	})
}
