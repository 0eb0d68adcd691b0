package flight

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"time"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/decode/fieldpath"
	"github.com/tidings-go/tidings/internal/engine/tape"
)

// writer writes the parts of a file.
type writer struct {
	zip     *zip.Writer
	encoder *zstd.Encoder
	made    time.Time
	cut     fieldpath.Tree
}

func write(to io.Writer, take tape.Take, reason string, cut fieldpath.Tree) error {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	w := &writer{zip: zip.NewWriter(to), encoder: encoder, made: take.Made, cut: cut}
	i := index{
		Format: formatName, Version: formatVersion, Reason: reason,
		Began: take.Began.UTC(), Made: take.Made.UTC(), Cut: cut.Paths(), Tracks: []indexTrack{},
	}
	for at := range take.Tracks {
		described, err := w.track(at+1, &take.Tracks[at])
		if err != nil {
			return err
		}
		i.Tracks = append(i.Tracks, described)
	}
	part, err := w.create(indexName, zip.Deflate)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(part)
	lines.SetIndent("", "  ")
	if err := lines.Encode(i); err != nil {
		return err
	}
	return w.zip.Close()
}

func (w *writer) create(name string, method uint16) (io.Writer, error) {
	return w.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: w.made})
}

func (w *writer) part(name string, fill func(to *bufio.Writer) error) error {
	part, err := w.create(name, zip.Store)
	if err != nil {
		return err
	}
	w.encoder.Reset(part)
	buffered := bufio.NewWriter(w.encoder)
	if err := fill(buffered); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return w.encoder.Close()
}

func (w *writer) track(number int, t *tape.TakenTrack) (indexTrack, error) {
	described := indexTrack{Name: t.Name, BaseVersion: t.Base.Version, Records: len(t.Records)}
	if t.Collection != nil {
		described.Collection = t.Collection()
	}
	c := described.Collection
	kind := schema.GroupVersionKind{Group: c.Group, Version: c.Version, Kind: c.Kind}
	encode := objectEncoder{kind: kind, metadata: c.Metadata, cut: w.cut}
	inRing := map[string]bool{}
	for i := range t.Records {
		inRing[t.Records[i].Key] = true
		encode.record(&t.Records[i], t.Decode)
	}
	err := w.part(partName(number, baseName), func(to *bufio.Writer) error {
		lines := json.NewEncoder(to)
		for o := range t.Base.Objects {
			described.Base++
			line := baseLine{Key: o.Key, Version: o.Version, UID: o.UID}
			if o.Object != nil && inRing[o.Key] {
				line.Object, _ = encode.object(o.Object) // otherwise its identity is all there is
			}
			if err := lines.Encode(line); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return described, err
	}
	err = w.part(partName(number, recordsName), func(to *bufio.Writer) error {
		lines := json.NewEncoder(to)
		for i := range t.Records {
			if err := lines.Encode(lineOf(&t.Records[i])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return described, err
	}
	err = w.part(partName(number, dataName), func(to *bufio.Writer) error {
		for i := range t.Records {
			if t.Records[i].Form == tape.Identity {
				continue
			}
			n, err := to.Write(t.Records[i].Data)
			if described.Bytes += int64(n); err != nil {
				return err
			}
		}
		return nil
	})
	return described, err
}

func lineOf(r *tape.Record) recordLine {
	line := recordLine{
		At: r.At, Kind: r.Kind, Type: tape.EventTypes[r.Type], Form: r.Form, Key: r.Key,
		Version: r.Version, LeftOut: r.LeftOut, More: r.More,
	}
	if r.Form != tape.Identity {
		line.Bytes = len(r.Data)
		return line
	}
	for o := range tape.Identities(r.Data) { // which the ring has written
		line.Items = append(line.Items, [4]string{o.Key, o.Version, o.UID, o.Err})
	}
	return line
}

// objectEncoder encodes objects in JSON.
type objectEncoder struct {
	kind     schema.GroupVersionKind // of objects without one
	metadata bool                    // they are metadata alone
	cut      fieldpath.Tree
}

// object encodes an object without the fields that are cut.
func (e objectEncoder) object(object any) ([]byte, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return nil, err
	}
	if e.cut.Remove(fields); len(e.cut) > 0 {
		withoutRepetitions(fields)
	}
	kind := e.kind
	_, metadata := object.(*metav1.PartialObjectMetadata)
	metadata = metadata || e.metadata
	if metadata { // the kind that servers send: clients may have replaced it
		kind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	}
	if metadata || fields["kind"] == nil && kind.Kind != "" {
		fields["apiVersion"], fields["kind"] = kind.ToAPIVersionAndKind()
	}
	return json.Marshal(fields)
}

// withoutRepetitions removes annotations that repeat an object: they have the fields that are cut.
func withoutRepetitions(fields map[string]any) {
	metadata, _ := fields["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	maps.DeleteFunc(annotations, func(_ string, value any) bool {
		text, ok := value.(string)
		return ok && fieldpath.RepeatsObject(text)
	})
}

// record encodes the object of a record where that is not encoded, or has fields that are cut. An
// object that cannot be encoded is left out.
func (e objectEncoder) record(r *tape.Record, decode func([]byte, tape.Form) (any, error)) {
	object := r.Object
	var err error
	switch {
	case object != nil:
	case len(e.cut) > 0 && (r.Form == tape.Protobuf || r.Form == tape.JSON) && !r.LeftOut:
		if object, err = decode(r.Data, r.Form); err != nil {
			break
		}
	default:
		return
	}
	r.Object, r.Form, r.Data = nil, tape.Encoded, nil
	if err == nil {
		r.Data, err = e.object(object)
	}
	r.LeftOut = err != nil
}
