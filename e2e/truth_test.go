package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/apiserver"
	"github.com/tidings-go/tidings/e2e/internal/follow"
)

// namespaces are those of the objects. Some followers follow the first two alone.
var namespaces = []string{"a", "b", "c"}

// startServer starts a server with the namespaces.
func startServer(t *testing.T) *apiserver.Server {
	t.Helper()
	server := newServer(t)
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range namespaces {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), n,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return server
}

// configMaps lists the server's config maps, not from its cache, and compares them with
// etcd's at the same revision: the server itself, and requests that it gave up, write on.
func configMaps(ctx context.Context, s *apiserver.Server) (follow.State, error) {
	client, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	state := follow.State{}
	for _, c := range list.Items {
		state.Add(&c)
	}
	revision, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	if err != nil {
		return nil, err
	}
	return state, etcd(s, func(c *clientv3.Client) error {
		const prefix = "/registry/configmaps/"
		stored, err := c.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(),
			clientv3.WithRev(revision))
		if err != nil {
			return err
		}
		if len(stored.Kvs) != len(state) {
			return fmt.Errorf("etcd has %d config maps, the server lists %d", len(stored.Kvs), len(state))
		}
		for _, kv := range stored.Kvs {
			key := strings.TrimPrefix(string(kv.Key), prefix)
			if state.Version(key) != strconv.FormatInt(kv.ModRevision, 10) {
				return fmt.Errorf("etcd has %s at revision %d, the server lists %q", key, kv.ModRevision,
					state[key])
			}
		}
		return nil
	})
}

// settle waits until every follower agrees with the server's config maps.
func settle(t *testing.T, s *apiserver.Server, all []*follow.Follower) {
	t.Helper()
	agree(t, all, func(ctx context.Context) (follow.State, error) { return configMaps(ctx, s) })
}

// agree waits until every follower agrees with the server's state, and fails the test if one
// does not, or has received an impossible event.
func agree(
	t *testing.T, all []*follow.Follower, server func(context.Context) (follow.State, error),
) {
	t.Helper()
	began := time.Now()
	defer func() { t.Logf("all agreed after %v", time.Since(began).Round(time.Millisecond)) }()
	var wrong []string
	err := eventually(t.Context(), patience, func(ctx context.Context) (bool, error) {
		state, err := server(ctx)
		if err != nil {
			return false, err
		}
		wrong = nil
		for _, f := range all {
			differences := f.Check(state)
			for _, difference := range differences {
				wrong = append(wrong, f.Name+": "+difference)
			}
			if len(differences) > 0 {
				wrong = append(wrong, fmt.Sprintf("%s: health %+v", f.Name, f.Health()))
			}
		}
		return len(wrong) == 0, nil
	})
	if err != nil {
		t.Fatalf("%v:\n%s", err, strings.Join(wrong, "\n"))
	}
}

// followConfigMaps starts followers of every kind of config maps.
func followConfigMaps(t *testing.T, config *rest.Config) []*follow.Follower {
	t.Helper()
	return startFollowers(t, config, follow.Options{
		Resource: follow.ConfigMaps, Namespaces: namespaces[:2], PageSize: 50,
	})
}

// followBriefly starts followers of config maps whose watches last so long.
func followBriefly(t *testing.T, config *rest.Config, watch time.Duration) []*follow.Follower {
	t.Helper()
	return startFollowers(t, config, follow.Options{
		Resource: follow.ConfigMaps, WatchTimeout: watch, PageSize: 50,
	})
}

// startFollowers starts followers, which end before the server does.
func startFollowers(t *testing.T, config *rest.Config, o follow.Options) []*follow.Follower {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	all, wait, err := follow.Start(ctx, config, o)
	t.Cleanup(func() {
		stop()
		wait()
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// churn writes config maps, so many times a second and without regard for errors, until end.
type churn struct {
	client        kubernetes.Interface
	stop          context.CancelFunc
	running       sync.WaitGroup
	made, refused atomic.Int64
}

// mapNames is the largest number of config maps in a namespace.
const mapNames = 100

// writers is the largest number of concurrent writes.
const writers = 8

func startChurn(t *testing.T, config *rest.Config, perSecond int, seed uint64) *churn {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Timeout = 5 * time.Second // a server that was killed may leave a write without an answer
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	c := &churn{client: client, stop: stop}
	for writer := range writers {
		c.running.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(writer)))
			ticker := time.NewTicker(time.Second * writers / time.Duration(perSecond))
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
					c.write(ctx, random)
				}
			}
		})
	}
	t.Cleanup(func() {
		c.stop()
		c.running.Wait()
	})
	return c
}

// end stops writing, returns when the last write has ended, and logs how many there were.
func (c *churn) end(t *testing.T) {
	t.Helper()
	c.stop()
	c.running.Wait()
	t.Logf("%d writes, %d refused", c.made.Load(), c.refused.Load())
}

// write creates, changes or deletes a config map.
func (c *churn) write(ctx context.Context, random *rand.Rand) {
	maps := c.client.CoreV1().ConfigMaps(namespaces[random.IntN(len(namespaces))])
	obj := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("map-%d", random.IntN(mapNames))},
		Data:       map[string]string{"n": strconv.Itoa(random.Int())},
	}
	var err error
	if random.IntN(4) == 0 {
		err = maps.Delete(ctx, obj.Name, metav1.DeleteOptions{})
	} else if _, err = maps.Update(ctx, obj, metav1.UpdateOptions{}); err != nil {
		_, err = maps.Create(ctx, obj, metav1.CreateOptions{})
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		c.refused.Add(1)
		return
	}
	c.made.Add(1)
}
