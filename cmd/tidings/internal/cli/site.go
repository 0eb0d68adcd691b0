package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/resolve"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// site is one of the clusters that a watcher follows, with what is followed there.
type site struct {
	cluster   *cluster
	label     string // the context where there are several sites, "" otherwise
	namespace string // to follow, "" for all
	factory   *tidings.Factory
	followed  []*followed
}

// followed is the objects of one type, or one of them, with their informer.
type followed struct {
	site         *site
	index        int // among all that a watcher follows
	of           view.Type
	name         string // of the one object, "" for all
	namespaced   bool
	informer     *tidings.Informer[*unstructured.Unstructured]
	registration *tidings.Registration
	state        tidings.State // as last shown
	noted        string        // the last note about its first list
}

// what names what is followed: pods, or pod/web.
func (f *followed) what() string {
	text := f.of.Plural
	if f.name != "" {
		text = f.of.Singular + "/" + f.name
	}
	return f.site.prefixed(text)
}

// prefixed puts the context before a text where there are several.
func (s *site) prefixed(text string) string {
	if s.label == "" {
		return text
	}
	return s.label + ": " + text
}

// where names the namespaces in words.
func (s *site) where() string {
	if s.namespace == "" {
		return "in all namespaces"
	}
	return fmt.Sprintf("in namespace %q", s.namespace)
}

// openSites reads the kubeconfig for each context. It sends nothing.
func openSites(ctx context.Context, all []*genericclioptions.ConfigFlags) ([]*site, error) {
	var sites []*site
	for _, flags := range all {
		c, err := open(ctx, flags)
		if err != nil {
			return nil, err
		}
		s := &site{cluster: c}
		if len(all) > 1 {
			s.label = c.target.Context
		}
		sites = append(sites, s)
	}
	return sites, nil
}

// resolveAll finds the types of queries on every site at once, and says who is asked if
// that takes long.
func resolveAll(sites []*site, queries []query, screen *view.Screen) ([][]resolve.Type, error) {
	types, errs := make([][]resolve.Type, len(sites)), make([]error, len(sites))
	answered := make(chan int)
	for i, s := range sites {
		go func() {
			types[i], errs[i] = s.cluster.types(queries)
			answered <- i
		}()
	}
	waiting := slices.Clone(sites)
	late := time.After(connectNote)
	for left := len(sites); left > 0; {
		select {
		case i := <-answered:
			waiting[i] = nil
			left--
		case <-late:
			for _, s := range waiting {
				if s != nil {
					screen.Note(screen.NotePalette().Dim("asking " + s.cluster.target.Server + " for its types …"))
				}
			}
		}
	}
	for i, err := range errs {
		if err != nil && sites[i].label != "" {
			errs[i] = fmt.Errorf("context %q: %w", sites[i].label, err)
		}
	}
	return types, errors.Join(errs...)
}

// choose decides which namespace to follow. A namespace for types that have none is a
// mistake in the command line.
func (s *site) choose(command string, all bool, types []resolve.Type) error {
	namespace, explicit, err := s.cluster.namespace()
	if err != nil {
		return err
	}
	namespaced := slices.ContainsFunc(types, func(t resolve.Type) bool { return t.Namespaced })
	if explicit && !namespaced {
		return problem.Usage(command, "%s have no namespace: leave out --namespace", types[0].Resource.Resource)
	}
	if s.namespace = namespace; all {
		s.namespace = ""
	}
	return nil
}

// follow asks for the informers of queries, whose types are given in their order.
func (s *site) follow(queries []query, types []resolve.Type, o watchOptions, factory tidings.FactoryOptions) error {
	var err error
	if s.factory, err = tidings.NewFactory(s.cluster.config, factory); err != nil {
		return s.cluster.target.Explain(err)
	}
	for i, t := range types {
		of := view.Type{Kind: t.Kind, Singular: t.Singular, Plural: t.Resource.Resource, Context: s.label}
		f := &followed{site: s, of: of, name: queries[i].name, namespaced: t.Namespaced}
		if slices.ContainsFunc(s.followed, func(other *followed) bool { return other.of == f.of && other.name == f.name }) {
			continue // by another of its names
		}
		selection := tidings.Selection{AllNamespaces: true, Labels: o.labels, Fields: o.fields}
		if t.Namespaced && s.namespace != "" {
			selection.AllNamespaces, selection.Namespace = false, s.namespace
		}
		if f.name != "" {
			selection.Fields = fields.OneTermEqualSelector(metav1.ObjectNameField, f.name).String()
		}
		if f.informer, err = tidings.Dynamic(s.factory, t.Resource, selection); err != nil {
			return s.cluster.target.Explain(err)
		}
		s.followed = append(s.followed, f)
	}
	return nil
}

// held says how much there is, in words.
func (s *site) held() string {
	var inNamespaces, clusterWide []string
	for _, f := range s.followed {
		count := view.Counted(int64(f.informer.Lister().Len()), f.of.Singular, f.of.Plural)
		switch {
		case f.name != "" && f.informer.Lister().Len() == 0:
			count = fmt.Sprintf("no %s %s yet", f.of.Singular, f.name)
		case f.name != "":
			count = f.of.Singular + " " + f.name
		}
		if f.namespaced {
			inNamespaces = append(inNamespaces, count)
		} else {
			clusterWide = append(clusterWide, count)
		}
	}
	if last := len(inNamespaces) - 1; last >= 0 {
		inNamespaces[last] += " " + s.where()
	}
	return s.prefixed(strings.Join(append(inNamespaces, clusterWide...), ", "))
}
