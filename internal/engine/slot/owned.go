package slot

// Owned is a slot that a member of a group owns.
type Owned struct {
	Number int
	// Epoch rises with each change of the owner.
	Epoch uint64
	// Versions are those by resource and selection at which the last owner saw its own writes: no
	// call may begin before the caches have reached them. Nil means that they are not known, as
	// after a crash: the server's are to be asked for.
	Versions map[string]string
}
