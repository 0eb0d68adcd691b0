package apisim

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestGarbledFrames(t *testing.T) {
	inBothEncodings(t, Options{}, func(b *bench, client kubernetes.Interface) {
		a := b.create("a")
		fault := b.server.Inject(Match{Verb: "watch"}, Garble(2))
		events := b.watchWith(client, at(a.ResourceVersion))
		second, third := b.relabel("a", "n=2"), b.relabel("a", "n=3")
		got := events()
		if len(got) < 2 || got[0] != "MODIFIED a@"+second.ResourceVersion || got[len(got)-1] != "END" || strings.Contains(fmt.Sprint(got), third.ResourceVersion) {
			b.Errorf("events %q", got)
		}
		fault.Lift()
		b.server.Inject(Match{Verb: "watch"}, Garble(EachFrame))
		if line := b.stream("resourceVersion=0")(); strings.Contains(line, "ADDED") || !strings.HasSuffix(line, "\n") {
			b.Errorf("the noise is %q", line)
		}
	})
}

func TestInflatedAnswersMeanTheSame(t *testing.T) {
	const more = 1 << 20
	inBothEncodings(t, Options{}, func(b *bench, client kubernetes.Interface) {
		a := b.create("a")
		b.server.Inject(Match{}, Inflate(EachFrame, more))
		list, err := client.CoreV1().ConfigMaps("default").List(b.ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			b.Errorf("list %v, %v", list, err)
		}
		events := b.watchWith(client, at(a.ResourceVersion))
		second, third := b.relabel("a", "n=2"), b.relabel("a", "n=3")
		b.want("events", events(), "MODIFIED a@"+second.ResourceVersion, "MODIFIED a@"+third.ResourceVersion)
		for _, accept := range []string{mediaJSON, mediaProtobuf} {
			if code, text := b.get("GET", mapsPath, "", "Accept", accept); code != 200 || len(text) < more {
				b.Errorf("%s: %d, %d bytes", accept, code, len(text))
			}
		}
	})
}

func TestDuplicateAndReorderedEvents(t *testing.T) {
	inBothEncodings(t, Options{BookmarkInterval: time.Minute}, func(b *bench, client kubernetes.Interface) {
		a := b.create("a")
		fault := b.server.Inject(Match{Verb: "watch"}, Duplicate(2))
		events := b.watchWith(client, at(a.ResourceVersion))
		fault.Lift()
		b.server.Inject(Match{Verb: "watch"}, Reorder(1), Reorder(4))
		reordered := b.watchWith(client, metav1.ListOptions{ResourceVersion: a.ResourceVersion, AllowWatchBookmarks: true})
		synctest.Wait()
		a2, b1, b2 := b.relabel("a", "n=2"), b.create("b"), b.relabel("b", "n=2")
		b.want("duplicated", events(), "MODIFIED a@"+a2.ResourceVersion, "ADDED b@"+b1.ResourceVersion, "ADDED b@"+b1.ResourceVersion, "MODIFIED b@"+b2.ResourceVersion)
		b.want("reordered", reordered(), "ADDED b@"+b1.ResourceVersion, "MODIFIED a@"+a2.ResourceVersion, "MODIFIED b@"+b2.ResourceVersion)
		b3 := b.relabel("b", "n=3")
		b.want("kept back", reordered())
		b4 := b.relabel("b", "n=4")
		b.want("events of one object stay in order", reordered(), "MODIFIED b@"+b3.ResourceVersion, "MODIFIED b@"+b4.ResourceVersion)
	})
}

func TestReorderedEventsComeBeforeBookmarksAndTheEnd(t *testing.T) {
	inBubble(t, Options{BookmarkInterval: time.Minute}, func(b *bench) {
		a := b.create("a")
		b.server.Inject(Match{Verb: "watch"}, Reorder(EachFrame))
		timeout := int64(30)
		events := b.follow(metav1.ListOptions{ResourceVersion: a.ResourceVersion, AllowWatchBookmarks: true})
		short := b.follow(metav1.ListOptions{ResourceVersion: a.ResourceVersion, TimeoutSeconds: &timeout})
		a2 := b.relabel("a", "n=2")
		b.want("kept back", events())
		time.Sleep(31 * time.Second)
		b.want("at the end", short(), "MODIFIED a@"+a2.ResourceVersion, "END")
		time.Sleep(30 * time.Second)
		b.want("before a bookmark", events(), "MODIFIED a@"+a2.ResourceVersion, "BOOKMARK @"+a2.ResourceVersion)
	})
}

func TestStalledWatch(t *testing.T) {
	inBubble(t, Options{BookmarkInterval: time.Minute}, func(b *bench) {
		a := b.create("a")
		fault := b.server.Inject(Match{Verb: "watch"}.Nth(1), Stall(2, 0))
		b.server.Inject(Match{Verb: "watch"}.Nth(2), Stall(0, time.Minute))
		o := at(a.ResourceVersion)
		events := b.follow(o)
		began := time.Now()
		later := b.follow(o)
		if time.Since(began) != time.Minute {
			b.Errorf("a watch whose head is stalled began after %v", time.Since(began))
		}
		a2, a3 := b.relabel("a", "n=2"), b.relabel("a", "n=3")
		b.want("stalled", events(), "MODIFIED a@"+a2.ResourceVersion)
		b.want("not stalled", later(), "MODIFIED a@"+a2.ResourceVersion, "MODIFIED a@"+a3.ResourceVersion)
		time.Sleep(20 * time.Minute)
		b.want("stalled for long", events())
		fault.Lift()
		b.want("lifted", events(), "MODIFIED a@"+a3.ResourceVersion)
	})
}

func TestStalledWatchEndsWithTheServer(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		a := b.create("a")
		b.server.Inject(Match{Verb: "watch"}, Stall(1, 0))
		b.follow(at(a.ResourceVersion))
		b.relabel("a", "n=2")
		synctest.Wait() // and Close, at the end, waits for the request
	})
}

func TestWatchThatFails(t *testing.T) {
	inBothEncodings(t, Options{}, func(b *bench, client kubernetes.Interface) {
		a := b.create("a")
		b.server.Inject(Match{Verb: "watch"}.Nth(1), Fail(0, 410))
		b.server.Inject(Match{Verb: "watch"}.Nth(2), Fail(2, 500))
		b.want("at once", b.watchWith(client, at(a.ResourceVersion))(), "ERROR 410 Expired", "END")
		events := b.watchWith(client, at(a.ResourceVersion))
		a2 := b.relabel("a", "n=2")
		b.relabel("a", "n=3")
		b.want("later", events(), "MODIFIED a@"+a2.ResourceVersion, "ERROR 500 InternalError", "END")
	})
}

func TestDroppedBookmarks(t *testing.T) {
	inBubble(t, Options{BookmarkInterval: time.Minute}, func(b *bench) {
		a := b.create("a")
		b.server.Inject(Match{Verb: "watch"}, DropBookmarks())
		yes := true
		events := b.follow(metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true})
		time.Sleep(10 * time.Minute)
		a2 := b.relabel("a", "n=2")
		b.want("events", events(), "ADDED a@"+a.ResourceVersion, "MODIFIED a@"+a2.ResourceVersion)
	})
}
