package apisim

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// document is an object in a file.
type document struct {
	file   string
	number int // in the file, from 1
	object *unstructured.Unstructured
}

// Load adds the objects of files in YAML or JSON, which may hold several documents and
// lists, as `kubectl get -o yaml` writes them. A name may be a pattern, or a directory,
// which stands for all files below it that end in .yaml, .yml or .json; a name without any
// file is an error.
//
// Objects keep their system metadata, such as UIDs and creation timestamps, and their
// status, but not their resource versions. Definitions and namespaces are added first, and
// missing namespaces are created. A namespaced object without a namespace goes to
// "default". Unknown fields are errors.
func (s *Server) Load(files ...string) error {
	var all []document
	for _, name := range files {
		found, err := filesOf(name)
		if err != nil {
			return err
		}
		for _, file := range found {
			text, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("apisim: %w", err)
			}
			documents, err := readDocuments(file, bytes.NewReader(text))
			if err != nil {
				return err
			}
			all = append(all, documents...)
		}
	}
	return s.add(all)
}

// LoadFrom adds the objects that it reads, as [Server.Load] does. name is the name of the
// source in errors.
func (s *Server) LoadFrom(name string, from io.Reader) error {
	documents, err := readDocuments(name, from)
	if err != nil {
		return err
	}
	return s.add(documents)
}

func filesOf(name string) ([]string, error) {
	matches, err := filepath.Glob(name)
	if err != nil {
		return nil, fmt.Errorf("apisim: the pattern %s: %w", name, err)
	}
	if len(matches) == 0 {
		return nil, fmt.Errorf("apisim: no file matches %s", name)
	}
	extensions := []string{".yaml", ".yml", ".json"}
	var files []string
	for _, match := range matches {
		err := filepath.WalkDir(match, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			if path == match || slices.Contains(extensions, filepath.Ext(path)) {
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("apisim: %w", err)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("apisim: no file below %s ends in .yaml, .yml or .json", name)
	}
	return files, nil
}

func readDocuments(name string, from io.Reader) ([]document, error) {
	var documents []document
	decoder := yaml.NewYAMLOrJSONDecoder(from, 4096)
	for number := 1; ; number++ {
		var raw runtime.RawExtension
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err == nil && (len(raw.Raw) == 0 || string(raw.Raw) == "null") {
			continue // a document of comments
		}
		add := func(item runtime.Object) error {
			documents = append(documents, document{name, number, item.(*unstructured.Unstructured)})
			return nil
		}
		u := &unstructured.Unstructured{}
		if err == nil {
			err = u.UnmarshalJSON(raw.Raw)
		}
		switch {
		case err == nil && u.IsList():
			err = u.EachListItem(add)
		case err == nil:
			err = add(u)
		}
		if err != nil {
			return nil, fmt.Errorf("apisim: %s: document %d: %w", name, number, err)
		}
	}
}

func (s *Server) add(documents []document) error {
	rank := func(d document) int {
		switch d.object.GetKind() {
		case "CustomResourceDefinition":
			return 0
		case "Namespace":
			return 1
		default:
			return 2
		}
	}
	slices.SortStableFunc(documents, func(a, b document) int { return rank(a) - rank(b) })
	for _, d := range documents {
		if err := s.addObject(d.object); err != nil {
			name := cmp.Or(d.object.GetName(), "without a name")
			return fmt.Errorf("apisim: %s: document %d (%s %s): %w",
				d.file, d.number, d.object.GetKind(), name, err)
		}
	}
	return nil
}

func (s *Server) addObject(u *unstructured.Unstructured) error {
	if u.GetAPIVersion() == "" {
		return errors.New("it has no apiVersion")
	}
	r, err := s.resourceOfKind(u)
	if err != nil {
		return err
	}
	obj, warnings, err := convert(r, u)
	if err == nil && len(warnings) > 0 {
		err = errUnhandled(r.gvk(), runtime.NewStrictDecodingError(warnings))
	}
	if err != nil {
		return err
	}
	if r.Namespaced {
		if obj.GetNamespace() == "" {
			obj.SetNamespace(metav1.NamespaceDefault)
		}
		if err := s.ensureNamespaces(obj.GetNamespace()); err != nil {
			return err
		}
	}
	_, err = s.create(r, obj, writeOptions{part: withSystemMetadata})
	if apierrors.IsAlreadyExists(err) && r.gvr() == namespaces &&
		slices.Contains(initialNamespaces, obj.GetName()) {
		obj.SetResourceVersion("")
		obj.SetUID("")
		_, _, err = s.update(r, obj, writeOptions{part: mainResource})
	}
	return err
}
