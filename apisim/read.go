package apisim

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// read returns the object of a path, as new as the request asks for.
func (s *Server) read(r *http.Request, res *resource, p requestPath) (object, error) {
	asked := r.URL.Query().Get("resourceVersion")
	version, err := parseVersion(asked)
	if err == nil {
		err = s.await(r, version)
	}
	if err != nil {
		return nil, err
	}
	if lag := lagOf(r); lag != nil && asked != "" {
		obj, ok := lag.of(res).Get(keyOf(p.namespace, p.name))
		if !ok {
			return nil, apierrors.NewNotFound(res.groupResource(), p.name)
		}
		return obj, nil
	}
	return s.get(res, p.namespace, p.name)
}

func (s *Server) get(r *resource, namespace, name string) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.getLocked(namespace, name)
}

func (r *resource) getLocked(namespace, name string) (object, error) {
	obj, ok := r.objects.Get(keyOf(namespace, name))
	if !ok || r.removed || r.retired {
		return nil, apierrors.NewNotFound(r.groupResource(), name)
	}
	return obj, nil
}
