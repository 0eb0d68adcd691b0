package tidings

// AddNamespace adds a namespace to the informer, also while it runs. Handlers receive the
// objects there as adds without the initial mark, unless the informer is not synced yet.
// WaitForSync and WaitFor wait for the namespace; one that cannot be read does not delay
// the others and is named in Health. Adding a namespace that is there changes nothing.
//
// The informer is shared: all its handles see the change, and the factory gives another
// informer to callers that ask for the namespaces that it had. Name changes with the
// namespaces; the log lines of a list and watch keep the name that the informer had when that
// began. AddNamespace must not be called from a transform or the logger: a RemoveNamespace
// elsewhere may wait for their return.
//
// Errors: ErrAllNamespaces, ErrClusterScoped, ErrStopped, ErrReleased, and names that no
// namespace can have.
func (i *Informer[T]) AddNamespace(namespace string) error {
	return i.changeNamespaces(namespace, (*collection[T]).AddNamespace)
}

// RemoveNamespace removes a namespace from the informer, also while it runs. The watch of
// the namespace has ended when the call returns. Its objects are then deleted from the cache
// in one step, and handlers receive deletes with the mark Tombstone and the last known state.
// WaitForSync waits for that.
// Removing a namespace that is not there changes nothing.
//
// As with AddNamespace, all handles see the change, and it must not be called from a
// transform or the logger. The errors are those of AddNamespace and ErrLastNamespace.
func (i *Informer[T]) RemoveNamespace(namespace string) error {
	return i.changeNamespaces(namespace, (*collection[T]).RemoveNamespace)
}

func (i *Informer[T]) changeNamespaces(
	namespace string, change func(*collection[T], string) error,
) error {
	c, err := i.held()
	if err != nil {
		return err
	}
	if err = checkNamespaces([]string{namespace}); err == nil {
		err = change(c, namespace)
	}
	if err != nil {
		return informerError(i.Name(), err)
	}
	return nil
}

// Namespaces returns the namespaces of the informer, sorted; none means all, a type whose
// objects have no namespace, or a handle that was released.
func (i *Informer[T]) Namespaces() []string {
	if c := i.collection.Load(); c != nil {
		return c.Namespaces()
	}
	return nil
}
