package apiserver

import "context"

// TB is the part of *testing.T, *testing.B and *testing.F that the package needs.
type TB interface {
	Helper()
	Cleanup(func())
	Context() context.Context
	Failed() bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Start starts a server for a test, and ends it with the test. If the test has failed, the end of
// the server's output is logged. The first call on a machine builds the server, see [Build].
func Start(t TB) *Server {
	t.Helper()
	return Options{}.Start(t)
}

// Start starts a server with these options for a test, as the function of that name does.
func (o Options) Start(t TB) *Server {
	t.Helper()
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatalf("%v", err)
		return nil
	}
	t.Cleanup(func() {
		t.Helper()
		if t.Failed() {
			t.Logf("the last that kube-apiserver printed:\n%s", s.output.String())
		}
		if err := s.Close(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return s
}
