package apisim

import (
	"fmt"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRewind(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a", "n=1")
		gone := b.create("gone")
		b.define()
		b.done(b.dynamic().Resource(widgetsV1).Namespace("default").Create(b.ctx, widget("v1", "w"), metav1.CreateOptions{}))
		snapshot := b.server.Snapshot()
		version := b.version()
		later := func() {
			b.relabel("a", "n=2")
			b.remove("gone")
			b.create("new")
			b.must(b.dynamic().Resource(definitions).Delete(b.ctx, "widgets.example.com", metav1.DeleteOptions{}))
			b.must(b.server.Register(Resource{Group: "example.com", Version: "v1", Name: "gadgets", Kind: "Gadget"}))
		}
		for range 2 {
			later()
			events := b.follow(at(b.version()))
			synctest.Wait()
			b.server.Rewind(snapshot)
			if got := events(); len(got) == 0 || got[len(got)-1] != "END" {
				b.Errorf("the watch goes on: %q", got)
			}
			names, list, err := b.list(metav1.ListOptions{})
			if err != nil || fmt.Sprint(names) != "[a gone]" || list.ResourceVersion != version || list.Items[0].Labels["n"] != "1" || list.Items[1].UID != gone.UID {
				b.Errorf("restored are %v @%s, %v", list.Items, list.ResourceVersion, err)
			}
			if _, err := b.dynamic().Resource(widgetsV1).Namespace("default").Get(b.ctx, "w", metav1.GetOptions{}); err != nil {
				b.Errorf("the custom object: %v", err)
			}
			if code, _ := b.get("GET", "/apis/example.com/v1/gadgets", ""); code != 404 {
				b.Errorf("a resource of later: %d", code)
			}
			b.want("a watch of the past", b.follow(at("6"))(), "ERROR 410 Expired", "END")
			again := b.follow(at(version))
			made := b.create("again")
			if got, want := made.ResourceVersion, fmt.Sprint(number(b, version)+1); got != want {
				b.Errorf("the next version is %s, want %s", got, want)
			}
			b.want("a watch from the snapshot", again(), "ADDED again@"+made.ResourceVersion)
			b.remove("again")
		}
	})
}

func number(b *bench, version string) uint64 {
	n, err := parseVersion(version)
	b.must(err)
	return n
}
