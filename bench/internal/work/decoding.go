package work

import (
	"context"
	"fmt"
	"runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/objects"
)

// decoding makes objects of protobuf messages in memory, and keeps them.
type decoding struct{}

func (decoding) Name() string { return "decoding" }

func (decoding) Cases(s Size) []Case {
	return []Case{{Work: "decoding", Seed: seed, Objects: pick(s, 200, 2_000, 20_000)}}
}

func (decoding) Run(_ context.Context, r Run) (m Metrics, err error) {
	decode := r.Stack.Decoder()
	messages := make([][]byte, r.Objects)
	for i := range messages {
		if messages[i], err = objects.Pod(r.Seed, i).Marshal(); err != nil {
			return nil, err
		}
	}
	kept := make([]metav1.Object, r.Objects)
	before := measure.Heap()
	usage, err := measure.Of(func() error {
		for i, message := range messages {
			if kept[i], err = decode(message); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	after := measure.Heap()
	for i, o := range kept {
		if want := objects.Version(i); o.GetResourceVersion() != want {
			return nil, fmt.Errorf("decoding: object %d has version %s, want %s", i, o.GetResourceVersion(), want)
		}
	}
	runtime.KeepAlive(messages)
	m.seconds("CPU per object", usage.CPU, r.Objects)
	m.add("allocations per object", "", float64(usage.Allocations)/float64(r.Objects))
	m.bytes("allocated per object", usage.Bytes, 0, r.Objects)
	m.bytes("heap per object", after, before, r.Objects)
	return m, nil
}
