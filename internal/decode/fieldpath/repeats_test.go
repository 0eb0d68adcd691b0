package fieldpath

import "testing"

func TestRepeatsObject(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "{": false, "a text": false, `{"a":1}`: false, `[1,2]`: false, `[]`: false, `{}`: false,
		`{"metadata":{}}`: true, " \n{\"data\":{\"k\":\"v\"}}\n": true, `{"items":[]}`: true, `{"stringData":{}}`: true,
		`[{"a":1},{"data":{}}]`: true, `[1,"x",{"metadata":{}}]`: true, `{"data":{}`: false, `"{\"data\":1}"`: false,
	} {
		if got := RepeatsObject(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
