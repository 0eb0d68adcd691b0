package apisim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
)

// The OpenAPI documents name each object's path and the parameters of its patch, and no
// schemas. kubectl looks there for the parameter fieldValidation, and leaves the validation
// to a server that has it.

const (
	// askedOpenAPIv2 is the only form in which client-go reads version 2. By the rules of
	// package mime it is not a media type.
	askedOpenAPIv2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	// mediaOpenAPIv2 is its media type.
	mediaOpenAPIv2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
)

// serveOpenAPI answers a request for an OpenAPI document, and reports whether the request
// was one.
func (s *Server) serveOpenAPI(w http.ResponseWriter, r *http.Request) bool {
	version, group, ofGroup := strings.Cut(strings.Trim(r.URL.Path, "/"), "/v3/")
	if r.Method != http.MethodGet || !strings.HasPrefix(version, "openapi") {
		return false
	}
	s.mu.Lock()
	served := s.servedLocked()
	s.mu.Unlock()
	switch {
	case version == "openapi/v2" && strings.Contains(r.Header.Get("Accept"), askedOpenAPIv2):
		writeOpenAPIv2(w, openAPIv2(served))
	case version == "openapi/v2":
		writeJSON(w, mediaJSON, openAPIv2(served))
	case version == "openapi/v3":
		type document struct {
			URL string `json:"serverRelativeURL"`
		}
		documents := make(map[string]document)
		for _, res := range served {
			documents[res.root()] = document{"/openapi/v3/" + res.root()}
		}
		writeJSON(w, mediaJSON, map[string]any{"paths": documents})
	case version == "openapi" && ofGroup:
		served = slices.DeleteFunc(served, func(res *resource) bool { return res.root() != group })
		if len(served) == 0 {
			return false
		}
		parameter := map[string]any{"schema": map[string]any{"type": "string"}}
		document := openAPI(served, parameter)
		document["openapi"] = "3.0.0"
		// kubectl explain reads the schemas without looking whether there are any.
		document["components"] = map[string]any{"schemas": map[string]any{}}
		writeJSON(w, mediaJSON, document)
	default:
		return false
	}
	return true
}

func openAPIv2(served []*resource) map[string]any {
	document := openAPI(served, map[string]any{"type": "string"})
	document["swagger"] = "2.0"
	return document
}

// openAPI returns what documents of both versions have in common. parameter describes a
// parameter, but for its name.
func openAPI(served []*resource, parameter map[string]any) map[string]any {
	parameter["name"], parameter["in"] = "fieldValidation", "query"
	paths := make(map[string]any)
	for _, res := range served {
		if !slices.Contains(res.verbs(), "patch") {
			continue
		}
		path := "/" + res.root() + "/" + res.Name + "/{name}"
		if res.Namespaced {
			path = "/" + res.root() + "/namespaces/{namespace}/" + res.Name + "/{name}"
		}
		paths[path] = map[string]any{"patch": map[string]any{
			"x-kubernetes-group-version-kind": map[string]string{
				"group": res.Group, "version": res.Version, "kind": res.Kind,
			},
			"parameters": []any{parameter},
			"responses":  map[string]any{"200": map[string]any{"description": "OK"}},
		}}
	}
	return map[string]any{
		"info":  map[string]any{"title": "Kubernetes", "version": servedVersion.GitVersion},
		"paths": paths,
	}
}

// root returns the path of a version of a group, such as apis/apps/v1.
func (r *resource) root() string {
	if r.Group == "" {
		return "api/" + r.Version
	}
	return fmt.Sprintf("apis/%s/%s", r.Group, r.Version)
}

func writeOpenAPIv2(w http.ResponseWriter, document map[string]any) {
	data, err := json.Marshal(document)
	var parsed *openapiv2.Document
	if err == nil {
		parsed, err = openapiv2.ParseDocument(data)
	}
	if err == nil {
		data, err = proto.Marshal(parsed)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	write(w, mediaOpenAPIv2, http.StatusOK, data)
}
