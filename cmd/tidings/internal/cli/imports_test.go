package cli_test

import (
	"strings"
	"testing"
)

func TestImports(t *testing.T) {
	t.Parallel()
	s := run(t, 0, "imports", "github.com/tidings-go/tidings/clientgo/cache")
	for _, part := range []string{
		"github.com/tidings-go/tidings (this module)\n", "  github.com/tidings-go/tidings/clientgo/cache  ",
	} {
		if !strings.Contains(s.out.String(), part) {
			t.Errorf("%q is not in %s", part, s.out)
		}
	}
	start(t, "imports", "fmt").expect(t, 0, "tidings: no package imports client-go's informers\n")
	fails(t, []string{"imports", "./nowhere"}, "tidings: go list: ", "nowhere", ": run it in the directory of a Go module that builds\n")
}
