package delta

import "errors"

// Errors of any call.
var (
	// ErrClosed is returned by every call after Close, and by calls that wait during it.
	ErrClosed = errors.New("delta: the queue is closed")
)

// Errors of producers. Nothing of the call was taken.
var (
	// ErrUnknownPartition is returned for a partition that does not exist or was removed.
	ErrUnknownPartition = errors.New("delta: unknown partition")
	// ErrForeignKey is returned for a key without the prefix of its partition.
	ErrForeignKey = errors.New("delta: key outside its partition")
	// ErrOlder is returned for a Replace whose version is before the one its partition has
	// reached.
	ErrOlder = errors.New("delta: the list is older than the state already reached")
)

// Errors of adding a partition.
var (
	// ErrOverlap is returned if one partition's prefix is equal to another's, or begins
	// with it.
	ErrOverlap = errors.New("delta: partitions overlap")
)

// Errors of the consumer.
var (
	// ErrBusy is returned by Pop while another Pop waits or processes.
	ErrBusy = errors.New("delta: another Pop is running; a queue has one consumer")
)
