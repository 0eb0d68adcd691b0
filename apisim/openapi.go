package apisim

import (
	"net/http"
	"path"
	"slices"
	"strings"
)

// The OpenAPI documents have the path of the objects of each resource and the parameters of its
// patch, but no schemas. kubectl looks for the parameter fieldValidation there, and leaves the
// validation to a server with the parameter.

// serveOpenAPI answers a request for an OpenAPI document of version 3, and reports whether the
// request was one.
func (s *Server) serveOpenAPI(w http.ResponseWriter, r *http.Request) bool {
	name, ok := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/"), "/openapi/v3")
	if !ok || r.Method != http.MethodGet {
		return false
	}
	s.mu.Lock()
	served := s.servedLocked()
	s.mu.Unlock()
	type fields = map[string]any
	paths := fields{}
	if name == "" {
		for _, res := range served {
			paths[res.root()] = fields{"serverRelativeURL": "/openapi/v3/" + res.root()}
		}
		writeJSON(w, mediaJSON, fields{"paths": paths})
		return true
	}
	served = slices.DeleteFunc(served, func(res *resource) bool { return "/"+res.root() != name })
	for _, res := range served {
		if slices.Contains(res.verbs(), "patch") {
			paths[res.objectPath()] = fields{"patch": fields{
				"x-kubernetes-group-version-kind": fields{
					"group": res.Group, "version": res.Version, "kind": res.Kind,
				},
				"parameters": []fields{
					{"name": "fieldValidation", "in": "query", "schema": fields{"type": "string"}},
				},
				"responses": fields{"200": fields{"description": "OK"}},
			}}
		}
	}
	if len(served) > 0 {
		writeJSON(w, mediaJSON, fields{
			"openapi": "3.0.0", "info": fields{"title": "Kubernetes", "version": servedVersion.GitVersion},
			"paths": paths,
			// kubectl explain reads the schemas without a check whether there are any.
			"components": fields{"schemas": fields{}},
		})
	}
	return len(served) > 0
}

// root returns the path of a version of a group, such as apis/apps/v1.
func (r *resource) root() string {
	if r.Group == "" {
		return "api/" + r.Version
	}
	return path.Join("apis", r.Group, r.Version)
}

// objectPath returns the path of the objects of the resource.
func (r *resource) objectPath() string {
	namespace := ""
	if r.Namespaced {
		namespace = "namespaces/{namespace}"
	}
	return path.Join("/", r.root(), namespace, r.Name, "{name}")
}
