package tidings_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidings-go/tidings/apisim"
)

// TestP16_ObjectsAhead sends once an object, and one that the server does not have, of versions
// far ahead of the server's own. The next list is right again.
func TestP16_ObjectsAhead(t *testing.T) {
	object := func(name string, version int) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,`+
			`"namespace":"default","uid":"u","resourceVersion":"%d","labels":{"n":"wrong"}}}`,
			name, version)
	}
	const ahead = 1_000_000_000
	a, ghost := object("a", ahead), object("ghost", ahead)
	list := `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`
	added := `{"type":"ADDED","object":`
	for verb, answer := range map[string]string{
		"list":  list + a + "," + ghost + "]}",
		"watch": added + a + "}\n" + added + ghost + "}\n" + added + object("a", 1) + "}\n",
	} {
		t.Run(verb, func(t *testing.T) {
			property(t, func(w *world) {
				w.server.RefuseStreamedLists(true)
				w.create("a", "1")
				refused := map[string]int{"watch": 1}[verb] // the streamed list
				w.inject(apisim.Match{Verb: verb, Resource: "configmaps", Skip: refused, Times: 1},
					answered("application/json", answer))
				w.startFactory()
				w.after(time.Minute)
				w.away(func() { w.update("a", "2") })
				w.after(time.Minute)
				w.agree()
			})
		})
	}
}
