package apisim

import (
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// listOptions reads and validates the parameters of a list or a watch.
func (s *Server) listOptions(r *http.Request) (*internalversion.ListOptions, error) {
	o := &internalversion.ListOptions{}
	if err := internalscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, o); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	s.mu.Lock()
	streams := !s.refusing
	s.mu.Unlock()
	if c := callOf(r); c != nil && c.refuseStreams {
		streams = false
	}
	if problems := validation.ValidateListOptions(o, streams); len(problems) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", problems)
	}
	return o, nil
}

// parseVersion reads a resource version; "" is 0.
func parseVersion(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest("Invalid value: \"" + text + "\": the resource version is not a number")
	}
	return version, nil
}

// futureWait is how long a list, streamed or not, waits for a version that is not there yet, which is
// what a real server does.
const futureWait = 3 * time.Second

// await waits until the server has reached a version.
func (s *Server) await(r *http.Request, version uint64) error {
	timer := time.NewTimer(futureWait)
	defer timer.Stop()
	for {
		s.mu.Lock()
		current, advanced := s.version, (<-chan struct{})(s.advanced)
		s.mu.Unlock()
		if lag := lagOf(r); lag != nil {
			current, advanced = min(current, lag.version), lag.caught
		}
		if version <= current {
			return nil
		}
		select {
		case <-advanced:
		case <-timer.C:
			return errTooNew(version, current)
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}
