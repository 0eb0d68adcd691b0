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

// document is an object and its source.
type document struct {
	object *unstructured.Unstructured
	source string // the file and the number of the document
}

// Load adds the objects of files in YAML or JSON, which may hold several documents and lists, as
// `kubectl get -o yaml` writes them. A name may be a pattern. A directory stands for all files
// below it that end in .yaml, .yml or .json. A name without any file is an error.
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
			return fmt.Errorf("apisim: %w", err)
		}
		for _, file := range found {
			text, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("apisim: %w", err)
			}
			if all, err = appendDocuments(all, file, bytes.NewReader(text)); err != nil {
				return err
			}
		}
	}
	return s.add(all)
}

// LoadFrom adds the objects of a reader, as [Server.Load] does. Errors name the source by name.
func (s *Server) LoadFrom(name string, from io.Reader) error {
	documents, err := appendDocuments(nil, name, from)
	if err != nil {
		return err
	}
	return s.add(documents)
}

func filesOf(name string) (files []string, err error) {
	matches, err := filepath.Glob(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the pattern %s: %w", name, err)
	case len(matches) == 0:
		return nil, fmt.Errorf("no file matches %s", name)
	}
	for _, match := range matches {
		err := filepath.WalkDir(match, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			if path == match || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no file below %s ends in .yaml, .yml or .json", name)
	}
	return files, nil
}

func appendDocuments(all []document, name string, from io.Reader) ([]document, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(from, 4096)
	for number := 1; ; number++ {
		source := fmt.Sprintf("%s: document %d", name, number)
		var raw runtime.RawExtension
		err := decoder.Decode(&raw)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err == nil && (len(raw.Raw) == 0 || string(raw.Raw) == "null"):
			continue // the document has only comments
		}
		u := &unstructured.Unstructured{}
		if err == nil {
			err = u.UnmarshalJSON(raw.Raw)
		}
		add := func(item runtime.Object) error {
			all = append(all, document{item.(*unstructured.Unstructured), source})
			return nil
		}
		switch {
		case err == nil && u.IsList():
			err = u.EachListItem(add)
		case err == nil:
			err = add(u)
		}
		if err != nil {
			return nil, fmt.Errorf("apisim: %s: %w", source, err)
		}
	}
}

func (s *Server) add(documents []document) error {
	first := []string{"Namespace", "CustomResourceDefinition"} // in reverse order
	rank := func(d document) int { return -slices.Index(first, d.object.GetKind()) }
	slices.SortStableFunc(documents, func(a, b document) int { return rank(a) - rank(b) })
	for _, d := range documents {
		if err := s.addObject(d.object); err != nil {
			return fmt.Errorf("apisim: %s (%s %s): %w", d.source, d.object.GetKind(),
				cmp.Or(d.object.GetName(), "without a name"), err)
		}
	}
	return nil
}

func (s *Server) addObject(u *unstructured.Unstructured) error {
	if u.GetAPIVersion() == "" {
		return errors.New("it has no apiVersion")
	}
	r, obj, warnings, err := s.resourceOf(u)
	if err == nil && len(warnings) > 0 {
		err = errUnhandled(r.gvk(), runtime.NewStrictDecodingError(warnings))
	}
	if err != nil {
		return err
	}
	if r.Namespaced {
		obj.SetNamespace(cmp.Or(obj.GetNamespace(), metav1.NamespaceDefault))
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
