package apisim

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidwall/btree"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// snapshotFormat begins every snapshot that is written. Another number is another form.
const snapshotFormat = "tidings-apisim-snapshot/1"

// A written snapshot is a sequence of JSON values, a line each: the head, and then each
// section with its objects.
type (
	snapshotHead struct {
		Format          string `json:"format"`
		ResourceVersion uint64 `json:"resourceVersion"`
		Sections        int    `json:"sections"`
	}

	// snapshotSection is a collection. It is that of a built-in resource, that of the
	// resources of a definition, which an earlier section holds, or that of a
	// resource that was registered.
	snapshotSection struct {
		Builtin     *schema.GroupVersionResource `json:"builtin,omitempty"`
		Definition  string                       `json:"definition,omitempty"`
		Registered  *Resource                    `json:"registered,omitempty"`
		Removed     bool                         `json:"removed,omitempty"`
		Terminating bool                         `json:"terminating,omitempty"`
		Objects     int                          `json:"objects"`
	}
)

// ResourceVersion returns the version of the server at the moment of the snapshot.
func (t *Snapshot) ResourceVersion() string { return versionString(t.version) }

// Objects returns how many objects the snapshot holds.
func (t *Snapshot) Objects() int {
	count := 0
	for _, objects := range t.objects {
		count += objects.Len()
	}
	return count
}

// WriteTo writes the snapshot for [Server.ReadSnapshot] to read, also that of another
// server: lines of JSON with all resources and objects, and the version. What a server
// has beside those is not in it: its history, users, faults, and log. It returns how many
// bytes it wrote, and the error of the writer, if any.
func (t *Snapshot) WriteTo(w io.Writer) (int64, error) {
	counter := &countingWriter{w: w}
	buffer := bufio.NewWriter(counter)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	resources := t.sections()
	err := encoder.Encode(snapshotHead{snapshotFormat, t.version, len(resources)})
	for _, r := range resources {
		if err == nil {
			err = t.writeSection(encoder, r)
		}
	}
	if err == nil {
		err = buffer.Flush()
	}
	if err != nil {
		return counter.n, fmt.Errorf("apisim: the snapshot cannot be written: %w", err)
	}
	return counter.n, nil
}

// sections returns a resource of each collection that has something to write: the
// definitions first, as others need them.
func (t *Snapshot) sections() []*resource {
	var found []*resource
	for _, r := range t.resources {
		if r.isBuiltin() && t.objects[r.collection].Len() == 0 && t.marks[r.collection] == (marks{}) {
			continue
		}
		found = append(found, r)
	}
	rank := func(r *resource) int {
		if r.gvr() == definitions {
			return 0
		}
		return 1
	}
	slices.SortFunc(found, func(a, b *resource) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	// The versions of one definition are neighbours, and hold the same objects.
	return slices.CompactFunc(found, func(a, b *resource) bool { return a.collection == b.collection })
}

// isBuiltin reports whether every server has the resource.
func (r *resource) isBuiltin() bool { return r.typed || r.gvr() == definitions }

func (t *Snapshot) writeSection(encoder *json.Encoder, r *resource) error {
	objects, marks := t.objects[r.collection], t.marks[r.collection]
	section := snapshotSection{Removed: marks.removed, Terminating: marks.terminating, Objects: objects.Len()}
	switch {
	case r.isBuiltin():
		section.Builtin = new(r.gvr())
	case r.definition != "":
		section.Definition = r.definition
	default:
		section.Registered = &r.Resource
	}
	err := encoder.Encode(section)
	objects.Scan(func(_ string, obj object) bool {
		if err == nil && r.typed {
			obj = withKind(obj, r.gvk())
		}
		if err == nil {
			err = encoder.Encode(obj)
		}
		return err == nil
	})
	return err
}

// countingWriter counts what is written.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// ReadSnapshot reads what [Snapshot.WriteTo] has written, as a snapshot of this server.
// It changes nothing: [Server.Rewind] restores what was read. Objects keep all that they
// had, resource versions and UIDs too; what is random later comes of this server's seed.
// Whatever is not a whole snapshot, or does not fit this server, is an error that says
// where.
func (s *Server) ReadSnapshot(from io.Reader) (*Snapshot, error) {
	r := &snapshotReader{server: s, decoder: json.NewDecoder(bufio.NewReader(from))}
	if err := r.read(); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it ends too early")
		}
		return nil, fmt.Errorf("apisim: the snapshot cannot be read: %w", err)
	}
	return r.taken, nil
}

// snapshotReader reads one snapshot.
type snapshotReader struct {
	server  *Server
	decoder *json.Decoder
	taken   *Snapshot
}

func (r *snapshotReader) read() error {
	head, err := r.head()
	if err != nil {
		return err
	}
	r.begin(head.ResourceVersion)
	done := make(map[*collection]bool)
	for number := range head.Sections {
		var section snapshotSection
		if err := r.decoder.Decode(&section); err != nil {
			return fmt.Errorf("section %d: %w", number+1, err)
		}
		res, err := r.section(section)
		if err == nil && done[res.collection] {
			err = fmt.Errorf("the resource %s has another section", res.groupResource())
		}
		if err != nil {
			return fmt.Errorf("section %d: %w", number+1, err)
		}
		done[res.collection] = true
		if err := r.readObjects(res, section.Objects); err != nil {
			return fmt.Errorf("section %d: %s: %w", number+1, res.groupResource(), err)
		}
	}
	if r.decoder.More() {
		return errors.New("something follows the last section")
	}
	return nil
}

func (r *snapshotReader) head() (head snapshotHead, err error) {
	err = r.decoder.Decode(&head)
	_, noJSON := errors.AsType[*json.SyntaxError](err)
	_, otherJSON := errors.AsType[*json.UnmarshalTypeError](err)
	cut := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if noJSON || otherJSON || cut || err == nil && head.Format != snapshotFormat {
		err = fmt.Errorf("it does not begin with the format %q: it is something else, or of another version of this package", snapshotFormat)
	}
	return head, err
}

// begin makes a snapshot of the built-in resources without objects.
func (r *snapshotReader) begin(version uint64) {
	r.taken = &Snapshot{
		server: r.server, version: version, resources: make(map[schema.GroupVersionResource]*resource),
		objects: make(map[*collection]*btree.Map[string, object]), marks: make(map[*collection]marks),
	}
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	for gvr, res := range r.server.resources {
		if res.isBuiltin() {
			r.taken.resources[gvr] = res
			r.taken.objects[res.collection] = &btree.Map[string, object]{}
		}
	}
}

// section finds or makes the resources of a section, and returns one of them.
func (r *snapshotReader) section(section snapshotSection) (*resource, error) {
	var all []*resource
	switch {
	case section.Builtin != nil:
		found, ok := r.taken.resources[*section.Builtin]
		if !ok || !found.isBuiltin() {
			return nil, fmt.Errorf("this server has no resource %s", section.Builtin)
		}
		r.taken.marks[found.collection] = marks{section.Removed, section.Terminating}
		return found, nil
	case section.Definition != "":
		obj, ok := r.taken.objects[r.taken.resources[definitions].collection].Get(section.Definition)
		if !ok {
			return nil, fmt.Errorf("there is no definition %s", section.Definition)
		}
		d, err := parseDefinition(obj)
		if err != nil {
			return nil, err
		}
		held := newCollection()
		held.definition = section.Definition
		all = d.resources(held)
	case section.Registered != nil && section.Registered.Name != "":
		given := *section.Registered
		all = []*resource{{Resource: given, columns: defaultColumns(), storedAs: schema.GroupVersion{Group: given.Group, Version: given.Version}, collection: newCollection()}}
	}
	if len(all) == 0 {
		return nil, errors.New("it is of no resource")
	}
	for _, res := range all {
		if _, taken := r.taken.resources[res.gvr()]; taken {
			return nil, fmt.Errorf("there are two resources %s", res.gvr())
		}
		r.taken.resources[res.gvr()] = res
	}
	held := all[0].collection
	r.taken.objects[held] = &btree.Map[string, object]{}
	r.taken.marks[held] = marks{section.Removed, section.Terminating}
	return all[0], nil
}

func (r *snapshotReader) readObjects(res *resource, count int) error {
	into := r.taken.objects[res.collection]
	for number := range count {
		obj, err := r.readObject(res)
		if err != nil {
			return fmt.Errorf("object %d: %w", number+1, err)
		}
		key := keyOf(obj.GetNamespace(), obj.GetName())
		if _, exists := into.Set(key, obj); exists {
			return fmt.Errorf("object %d: there are two of the name %s", number+1, key)
		}
	}
	return nil
}

// readObject reads an object as it is stored.
func (r *snapshotReader) readObject(res *resource) (object, error) {
	var raw json.RawMessage
	if err := r.decoder.Decode(&raw); err != nil {
		return nil, err
	}
	obj, err := r.decode(res, raw)
	if err != nil {
		return nil, err
	}
	if err := checkMetadata(res, obj); err != nil {
		return nil, err
	}
	if err := checkObject(res, obj); err != nil {
		return nil, err
	}
	version, err := parseVersion(obj.GetResourceVersion())
	if err != nil {
		return nil, err
	}
	if version == 0 || version > r.taken.version {
		return nil, fmt.Errorf("the resource version %q of %s is not one from 1 to the snapshot's, %d", obj.GetResourceVersion(), obj.GetName(), r.taken.version)
	}
	return obj, nil
}

func (r *snapshotReader) decode(res *resource, raw []byte) (object, error) {
	if res.typed {
		obj, unknown, err := decodeAs(r.server.decoder.json, raw, res)
		if err == nil && len(unknown) > 0 {
			err = runtime.NewStrictDecodingError(unknown)
		}
		if err == nil {
			asStored(res, obj)
		}
		return obj, err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	if want := res.storedAs.WithKind(res.Kind); u.GroupVersionKind() != want {
		return nil, errWrongKind(u.GroupVersionKind(), want)
	}
	return u, checkMap(u)
}
