package simulation

import "github.com/tidings-go/tidings"

// fixedSubjects returns an informer of each kind with a selection that does not change.
func (w *world) fixedSubjects() []*subject {
	maps, hiding := scope{resource: configMaps}, scope{resource: configMaps, hides: true}
	one := scope{resource: configMaps, name: "object-1"}
	two := scope{resource: configMaps, namespaces: []string{"a", "b"}}
	third := scope{resource: configMaps, namespaces: []string{"c"}}
	all := scope{resource: widgets}
	anyFailure := &userCode{hows: []string{"error", "nil", "panic"}}
	errors := &userCode{hows: []string{"error"}}
	return []*subject{
		{kind: "native-typed", scope: maps, open: native(newTyped)},
		{kind: "native-selecting", scope: hiding, open: native(newTyped)},
		{kind: "native-transforming", scope: maps, open: native(newTyped), code: anyFailure},
		{kind: "native-one-object", scope: one, open: native(newTyped)},
		{kind: "native-dynamic", scope: all, open: native(newDynamic)},
		{kind: "native-secrets", scope: scope{resource: secretsOf}, open: native(newSecrets)},
		{kind: "native-secrets-unchecked", scope: scope{resource: secretsOf}, open: native(newSecretView)},
		{kind: "native-metadata", scope: two, open: native(newMetadata)},
		{kind: "native-view", scope: hiding, open: native(newView)},
		{kind: "native-view-unchecked", scope: all, open: native(newUncheckedView)},
		{
			kind: "native-view-transforming", scope: maps, open: native(newView),
			code: &userCode{hows: []string{"error", "nil", "panic"}},
		},
		{kind: "native-optional", scope: all, open: native(newDynamic), optional: true},
		{kind: "drop-in-clientset", scope: hiding, open: dropIn(fromClientset), dropIn: true},
		{kind: "drop-in-typed", scope: maps, open: dropIn(fromTypedClient), dropIn: true, fakes: true},
		{
			kind: "drop-in-transforming", scope: maps, open: dropIn(fromClientset), dropIn: true,
			code: errors,
		},
		{kind: "drop-in-dynamic", scope: all, open: dropIn(fromDynamicClient), dropIn: true, fakes: true},
		{
			kind: "drop-in-metadata", scope: third, open: dropIn(fromMetadataClient), dropIn: true,
			fakes: true,
		},
	}
}

// dividedSubjects returns an informer of each kind whose slots or namespaces change.
func (w *world) dividedSubjects() []*subject {
	byUID, byNamespace := w.newHolding(tidings.ByUID), w.newHolding(tidings.ByNamespace)
	two := scope{resource: configMaps, namespaces: []string{"a", "b"}, hides: true}
	both := scope{resource: configMaps, namespaces: []string{"a", "b"}, slots: byUID}
	here := scope{resource: configMaps, namespaces: []string{"c"}, slots: byUID}
	all := scope{resource: widgets, slots: byUID}
	whole := scope{resource: configMaps, slots: byNamespace}
	return []*subject{
		{
			kind: "native-namespaces", scope: two, open: native(newTyped),
			code: &userCode{hows: []string{"error"}},
		},
		{kind: "native-slots", scope: both, open: native(newTyped)},
		{kind: "native-slots-by-namespace", scope: whole, open: native(newMetadata)},
		{kind: "native-slots-view", scope: both, open: native(newView)},
		{kind: "native-slots-view-unchecked", scope: all, open: native(newUncheckedView)},
		{kind: "native-slots-optional", scope: all, open: native(newDynamic), optional: true},
		{kind: "native-slots-stripping", scope: both, open: native(newTyped), strips: true},
		{kind: "native-slots-refusing", scope: both, open: native(newTyped), refuses: true},
		{kind: "drop-in-slots", scope: here, open: dropIn(fromClientset), dropIn: true},
	}
}
