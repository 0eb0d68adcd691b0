package source

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// TestUnknownFieldsOfEveryWireTypeAreSkipped reads an envelope behind fields of a later
// version of the protocol, and an event before them.
func TestUnknownFieldsOfEveryWireTypeAreSkipped(t *testing.T) {
	const later = 77
	for name, unknown := range map[string][]byte{
		"varint":  protowire.AppendVarint(protowire.AppendTag(nil, later, protowire.VarintType), 1<<40),
		"32 bits": protowire.AppendFixed32(protowire.AppendTag(nil, later, protowire.Fixed32Type), 1<<30),
		"64 bits": protowire.AppendFixed64(protowire.AppendTag(nil, later, protowire.Fixed64Type), 1<<60),
		"bytes":   protowire.AppendBytes(protowire.AppendTag(nil, later, protowire.BytesType), []byte("later")),
		"group": protowire.AppendTag(protowire.AppendVarint(protowire.AppendTag(
			protowire.AppendTag(nil, later, protowire.StartGroupType), 1, protowire.VarintType), 5), later, protowire.EndGroupType),
	} {
		data := append([]byte(protobufMagic), unknown...)
		data = protowire.AppendBytes(protowire.AppendTag(data, unknownRaw, protowire.BytesType), []byte("raw"))
		if e, err := openEnvelope(data); err != nil || string(e.raw) != "raw" {
			t.Errorf("%s: %q, %v", name, e.raw, err)
		}
		frame := field(watchEventObject, field(rawExtensionRaw, "raw")+string(unknown))
		if _, object, err := openWatchEvent([]byte(frame)); err != nil || string(object) != "raw" {
			t.Errorf("%s in an event: %q, %v", name, object, err)
		}
		for n := range len(unknown) - 1 {
			if e, err := openEnvelope(data[:len(protobufMagic)+1+n]); err == nil {
				t.Errorf("%s, cut after %d bytes: %+v", name, n+1, e)
			}
		}
	}
}

// TestANumberTooLongIsNotCut: ten bytes of a number that has no end are no part of one, so that more
// bytes are not waited for.
func TestANumberTooLongIsNotCut(t *testing.T) {
	for n, cut := range map[int]bool{1: true, 9: true, 10: false, 11: false} {
		f := fields{rest: bytes.Repeat([]byte{0x80}, n)}
		if f.next() || f.err == nil || f.cut != cut {
			t.Errorf("%d bytes of a tag: %v, cut %v", n, f.err, f.cut)
		}
	}
}
