package contract_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// phaseView is a view of pods.
type phaseView struct {
	tidings.Meta `json:"metadata"`
	Spec         struct {
		NodeName string `json:"nodeName"`
		Volumes  []struct {
			Name   string `json:"name"`
			Secret *struct {
				SecretName string `json:"secretName"`
			} `json:"secret"`
		} `json:"volumes"`
	} `json:"spec"`
	Status struct {
		Phase corev1.PodPhase `json:"phase"`
	} `json:"status"`
}

// The views with a mistake, for TestV2_Mistakes.
type (
	untagged struct {
		tidings.Meta `json:"metadata"`
		Spec         corev1.PodSpec
	}
	unknownField struct {
		tidings.Meta `json:"metadata"`
		Spec         struct {
			NodeNames string `json:"nodename"`
		} `json:"spec"`
	}
	otherType struct {
		tidings.Meta `json:"metadata"`
		Spec         struct {
			NodeName int64 `json:"nodeName"`
		} `json:"spec"`
	}
	pointerForValue struct {
		tidings.Meta `json:"metadata"`
		Spec         *corev1.PodSpec `json:"spec"`
	}
	valueForPointer struct {
		tidings.Meta `json:"metadata"`
		Spec         struct {
			Priority int32 `json:"priority"`
		} `json:"spec"`
	}
	otherTime struct {
		tidings.Meta `json:"metadata"`
		Status       struct {
			StartTime *string `json:"startTime"`
		} `json:"status"`
	}
	otherQuantity struct {
		tidings.Meta `json:"metadata"`
		Spec         struct {
			Overhead map[string]string `json:"overhead"`
		} `json:"spec"`
	}
	anyField struct {
		tidings.Meta `json:"metadata"`
		Spec         struct {
			NodeName any `json:"nodeName"`
		} `json:"spec"`
	}
	promoting struct {
		tidings.Meta     `json:"metadata"`
		corev1.PodStatus `json:"status"`
	}
	noMetadata struct {
		tidings.Meta `json:"meta"`
	}
	withKind struct {
		metav1.TypeMeta `json:",inline"`
		tidings.Meta    `json:"metadata"`
	}
	ignoring struct {
		tidings.Meta `json:"metadata"`
		Note         string `json:"-"`
	}
	quoted struct {
		tidings.Meta `json:"metadata"`
		Spec         struct {
			HostNetwork bool `json:"hostNetwork,string"`
		} `json:"spec"`
	}
	embedsPointer struct {
		tidings.Meta `json:"metadata"`
		Spec         struct {
			*hidden `json:",inline"`
		} `json:"spec"`
	}
	hidden    struct{}
	ownGetter struct{ tidings.Meta }
)

// TestV2_Mistakes makes each mistake of a view once: View says where it is, which types there are, and
// what to do.
func TestV2_Mistakes(t *testing.T) {
	factory := mistakesFactory(t)
	for name, test := range map[string]struct {
		err  error
		says []string
	}{
		"untagged":          {viewError[*untagged](factory), []string{"Spec", "has no tag", `json:"nodeName"`}},
		"unknown field":     {viewError[*unknownField](factory), []string{`"spec.nodename"`, "v1.PodSpec", `it has "nodeName"`}},
		"another type":      {viewError[*otherType](factory), []string{`"spec.nodeName"`, "int64", "string", "declare it as string"}},
		"pointer for value": {viewError[*pointerForValue](factory), []string{`"spec"`, "*v1.PodSpec", "a pointer for a value"}},
		"value for pointer": {viewError[*valueForPointer](factory), []string{`"spec.priority"`, "int32", "*int32", "may be absent"}},
		"time":              {viewError[*otherTime](factory), []string{`"status.startTime"`, "v1.Time", "encoding of its own"}},
		"quantity":          {viewError[*otherQuantity](factory), []string{`"spec.overhead"`, "resource.Quantity", "encoding of its own"}},
		"interface":         {viewError[*anyField](factory), []string{`"spec.nodeName"`, "interface", "declare it as string"}},
		"promoting":         {viewError[*promoting](factory), []string{"Unmarshal", "stand for the whole"}},
		"no metadata":       {viewError[*noMetadata](factory), []string{`json:"metadata"`, "embed Meta once"}},
		"kind":              {viewError[*withKind](factory), []string{`"kind"`, "one kind"}},
		"left out":          {viewError[*ignoring](factory), []string{"Note", "remove the field"}},
		"quoted":            {viewError[*quoted](factory), []string{"HostNetwork", "string"}},
		"embedded pointer":  {viewError[*embedsPointer](factory), []string{"embeds the pointer"}},
		"untagged Meta":     {viewError[*ownGetter](factory), []string{"0 fields", `json:"metadata"`}},
	} {
		text := "no error"
		if test.err != nil {
			text = test.err.Error()
		}
		for _, part := range test.says {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %s\nlacks %q", name, text, part)
			}
		}
	}
	if _, err := tidings.View[*phaseView, *corev1.Pod](factory, tidings.Selection{Drop: []string{"spec"}}); !errors.Is(err, tidings.ErrInvalidSelection) {
		t.Errorf("Drop beside a view: %v", err)
	}
	if _, err := tidings.View[*phaseView, *notInScheme](factory, tidings.Selection{}); !errors.Is(err, tidings.ErrNotInScheme) {
		t.Errorf("a type that is in no scheme: %v", err)
	}
	for _, kind := range []schema.GroupVersionKind{{}, {Version: "v1"}, {Kind: "Pod"}} {
		if _, err := tidings.UncheckedView[*phaseView](factory, kind, tidings.Selection{}); err == nil {
			t.Errorf("the kind %v has no error", kind)
		}
	}
	if _, err := tidings.View[*phaseView, *corev1.Pod](nil, tidings.Selection{}); !errors.Is(err, tidings.ErrNilFactory) {
		t.Errorf("without a factory: %v", err)
	}
}

// TestV5_ReadOnly: no client takes a view, and a recorder of events takes a reference to it.
func TestV5_ReadOnly(t *testing.T) {
	var view any = &phaseView{Meta: tidings.Meta{Namespace: "a", Name: "x", UID: "1", ResourceVersion: "7"}}
	if _, ok := view.(metav1.Object); ok {
		t.Error("a view is a metav1.Object")
	}
	if _, ok := view.(runtime.Object); ok {
		t.Error("a view is a runtime.Object")
	}
	want := corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: "a", Name: "x", UID: "1", ResourceVersion: "7",
	}
	if got := view.(*phaseView).Reference(corev1.SchemeGroupVersion.WithKind("Pod")); *got != want {
		t.Errorf("refers to %+v", got)
	}
}

type notInScheme struct{ corev1.Pod }

func mistakesFactory(t *testing.T) *tidings.Factory {
	t.Helper()
	factory, err := tidings.NewFactory(apisim.Start(t).Config(), tidings.FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return factory
}

func viewError[V tidings.Object](f *tidings.Factory) error {
	_, err := tidings.View[V, *corev1.Pod](f, tidings.Selection{})
	return err
}

// RankedMeta is metadata with a field that no object has.
type RankedMeta struct {
	tidings.Meta `json:",inline"`
	Rank         int64 `json:"rank"`
}

type rankedView struct {
	RankedMeta `json:"metadata"`
}

// TestV2_UncheckedMetadata takes metadata as it is declared, too.
func TestV2_UncheckedMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		_, err := apisim.Create(t.Context(), w.server, c)
		w.must(err)
		views, err := tidings.UncheckedView[*rankedView](w.factory,
			corev1.SchemeGroupVersion.WithKind("ConfigMap"), tidings.Selection{})
		w.must(err)
		w.start()
		got, err := views.Lister().Namespace("default").Get("a")
		w.must(err)
		if got.Rank != 0 || got.UID == "" {
			t.Errorf("%+v", got)
		}
	})
}
