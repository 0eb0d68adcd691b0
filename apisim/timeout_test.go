package apisim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestTimeouts sends requests that run for 20 seconds at most, and whose answers are a
// minute late.
func TestTimeouts(t *testing.T) {
	held, late := Stall(0, time.Minute), Delay(time.Minute)
	body := `{"metadata":{"name":"b"}}`
	for _, test := range []struct {
		method, path, timeout string
		fault                 Fault
		code                  int
		after                 time.Duration
		made                  bool // there is an object b
	}{
		{"POST", mapsPath, "20s", late, 504, 20 * time.Second, false},
		{"POST", mapsPath, "20s", held, 504, 20 * time.Second, true},
		{"POST", mapsPath, "50s", late, 504, 34 * time.Second, false},
		{"POST", mapsPath, "0s", late, 201, time.Minute, true},
		{"POST", mapsPath, "2m", late, 201, time.Minute, true},
		{"POST", mapsPath, "", held, 201, time.Minute, true},
		{"POST", mapsPath, "20s", Delay(19 * time.Second), 201, 19 * time.Second, true},
		{"POST", mapsPath, "20", Fault{}, 400, 0, false},
		{"GET", mapsPath + "/a", "20s", late, 504, 20 * time.Second, false},
		{"GET", mapsPath, "50s", held, 504, 50 * time.Second, false},
		{"DELETE", mapsPath, "50s", late, 504, 50 * time.Second, false},
		{"GET", mapsPath + "?resourceVersion=1000", "1s", Fault{}, 504, time.Second, false},
		{"GET", mapsPath + "?watch=1", "20s", late, 200, time.Minute, false},
	} {
		inBubble(t, Options{}, func(b *bench) {
			b.create("a")
			b.server.Inject(Match{}, test.fault)
			separator := "?"
			if strings.Contains(test.path, "?") {
				separator = "&"
			}
			began := time.Now()
			response := b.do(test.method, test.path+separator+"timeout="+test.timeout, body)
			what := fmt.Sprintf("%s %s, timeout %q, %v", test.method, test.path, test.timeout, test.fault)
			if response.StatusCode != test.code || time.Since(began) != test.after {
				b.Errorf("%s: %d after %v", what, response.StatusCode, time.Since(began))
			}
			names, _, err := b.list(metav1.ListOptions{})
			if made := fmt.Sprint(names) == "[a b]"; err != nil || made != test.made {
				b.Errorf("%s: afterwards %v, %v", what, names, err)
			}
		})
	}
}

// TestTimeoutIsAStatus checks client-go's error for a timeout, and that a later fault does not
// answer in its place.
func TestTimeoutIsAStatus(t *testing.T) {
	inBothEncodings(t, Options{}, func(b *bench, client kubernetes.Interface) {
		b.server.Inject(Match{Verb: "get"}, Delay(time.Minute), Refuse(429, 0), Stall(0, time.Minute))
		err := client.CoreV1().RESTClient().Get().AbsPath(mapsPath+"/a").Param("timeout", "5s").Do(b.ctx).Error()
		if !isStatus(err, 504, metav1.StatusReasonTimeout) {
			b.Errorf("got %v", err)
		}
	})
}

// TestTimeoutWithinABody closes the connection, as the head of the answer is sent.
func TestTimeoutWithinABody(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a")
		b.server.Inject(Match{Verb: "get"}, Stall(1, time.Minute))
		began := time.Now()
		err := b.typed.CoreV1().RESTClient().Get().AbsPath(mapsPath+"/a").Param("timeout", "5s").Do(b.ctx).Error()
		if err == nil || time.Since(began) != 5*time.Second {
			b.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestApplyLater(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		maps := b.typed.CoreV1().ConfigMaps("default")
		fault := b.server.Inject(Match{}, ApplyLater(10*time.Second, 504))
		began := time.Now()
		_, err := maps.Create(b.ctx, configMap("a"), metav1.CreateOptions{})
		if !isStatus(err, 504, metav1.StatusReasonTimeout) || !strings.Contains(err.Error(), "(create configmaps)") || time.Since(began) != 0 {
			b.Errorf("a create, after %v: %v", time.Since(began), err)
		}
		if _, err := maps.List(b.ctx, metav1.ListOptions{}); !isStatus(err, 504, metav1.StatusReasonTimeout) {
			b.Errorf("a list: %v", err)
		}
		fault.Lift()
		time.Sleep(9 * time.Second)
		if names, _, err := b.list(metav1.ListOptions{}); err != nil || names != nil {
			b.Errorf("before its time there are %v, %v", names, err)
		}
		time.Sleep(2 * time.Second)
		if names, _, err := b.list(metav1.ListOptions{}); err != nil || fmt.Sprint(names) != "[a]" {
			b.Errorf("after its time there are %v, %v", names, err)
		}
		if log := b.server.Requests(); len(log.Of(Match{Verb: "create"})) != 1 {
			b.Errorf("the log is\n%v", log)
		}
		b.server.Inject(Match{}, ApplyLater(10*time.Second, 504))
		b.done(b.server.Create(b.ctx, configMap("b")))
		if err := maps.Delete(b.ctx, "b", metav1.DeleteOptions{}); err == nil {
			b.Error("the delete was answered")
		}
		b.must(b.server.Close())
		time.Sleep(time.Minute)
		if _, err := b.server.Get(b.ctx, configMaps, "default", "b"); err != nil {
			b.Errorf("a closed server has carried a write out: %v", err)
		}
	})
}

// TestOneAddressIsLate delays the requests of one of two clients that have the same user
// agent.
func TestOneAddressIsLate(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a")
		b.server.Inject(Match{Host: "replica-2"}, Delay(time.Minute))
		for host, want := range map[string]time.Duration{"replica-1": 0, "replica-2": time.Minute} {
			c := b.server.Config()
			c.Host = "http://" + host
			client, err := kubernetes.NewForConfig(c)
			b.must(err)
			began := time.Now()
			b.done(client.CoreV1().ConfigMaps("default").Get(b.ctx, "a", metav1.GetOptions{}))
			if time.Since(began) != want {
				b.Errorf("%s is answered after %v", host, time.Since(began))
			}
		}
	})
}
