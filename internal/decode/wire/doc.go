// Package wire reads the encoded forms of objects without decoding them: the fields of
// protobuf messages, and the values in JSON texts.
//
// [Varint], [Span], [Tag] and [Skip] read protobuf. [Tokens] checks the syntax of a whole
// JSON text and cuts it into tokens. [ValueEnd], [Fields] and [Brackets] find the parts of a
// JSON text by its brackets and quotes alone, which is faster, and leave the syntax of the
// parts to their decoder.
//
// Functions return the index after the value that they read, or -1 where it is malformed or cut
// off. They keep nothing, copy nothing and allocate nothing, except the tokens.
package wire
