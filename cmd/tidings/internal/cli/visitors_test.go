package cli_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestServersAnswerNoWebPage sends what a browser sends for a page from elsewhere, and what
// programs send.
func TestServersAnswerNoWebPage(t *testing.T) {
	t.Parallel()
	secret := textFile(t, t.TempDir(), "s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: hunter2}\n")
	s := served(t, "--load", secret)
	here := strings.TrimPrefix(s.config.Host, "http://")
	_, port, _ := strings.Cut(here, ":")
	const made = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"c-"}}`
	type headers map[string]string
	for name, c := range map[string]struct {
		body    string
		headers headers
		want    int
	}{
		"a program":                    {"", nil, 200},
		"by another name":              {"", headers{"Host": "localhost:" + port}, 200},
		"by another address":           {"", headers{"Host": "127.1.2.3"}, 200},
		"by IPv6":                      {"", headers{"Host": "[::1]:" + port}, 200},
		"its own page":                 {"", headers{"Origin": "http://" + here, "Sec-Fetch-Site": "same-origin"}, 200},
		"a name that was rebound":      {"", headers{"Host": "evil.example:" + port}, 421},
		"rebound, its own origin":      {"", headers{"Host": "evil.example:" + port, "Origin": "http://evil.example:" + port}, 421},
		"a name like ours":             {"", headers{"Host": "localhost.evil.example"}, 421},
		"another machine's address":    {"", headers{"Host": "192.0.2.1:" + port}, 421},
		"a page elsewhere":             {"", headers{"Origin": "https://evil.example"}, 403},
		"a page of another port":       {"", headers{"Origin": "http://localhost:1"}, 403},
		"a page without an origin":     {"", headers{"Origin": "null"}, 403},
		"a link from elsewhere":        {"", headers{"Sec-Fetch-Site": "cross-site"}, 403},
		"a program creates":            {made, headers{"Content-Type": "application/json"}, 201},
		"a page creates":               {made, headers{"Content-Type": "application/json", "Origin": "https://evil.example"}, 403},
		"no content type":              {made, headers{}, 415},
		"a content type of every page": {made, headers{"Content-Type": "Text/Plain; charset=utf-8"}, 415},
		"a form":                       {made, headers{"Content-Type": "application/x-www-form-urlencoded"}, 415},
	} {
		method, path := http.MethodGet, "/api/v1/namespaces/default/secrets/s"
		if c.body != "" {
			method, path = http.MethodPost, "/api/v1/namespaces/default/configmaps"
		}
		req, err := http.NewRequestWithContext(t.Context(), method, s.config.Host+path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		for header, value := range c.headers {
			req.Header.Set(header, value)
		}
		if host := c.headers["Host"]; host != "" {
			req.Host = host
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close() //nolint:errcheck // it was read
		if err != nil || resp.StatusCode != c.want || (c.want >= 400) != strings.Contains(string(body), `"kind":"Status"`) {
			t.Errorf("%s: %d, want %d: %s, %v", name, resp.StatusCode, c.want, body, err)
		}
	}
	s.end(t)
	if s.err.String() != "" {
		t.Errorf("a warning about an address that nobody else reaches: %s", s.err)
	}
}

// TestServersWarnWhereOthersReachThem: with their true address.
func TestServersWarnWhereOthersReachThem(t *testing.T) {
	t.Parallel()
	s := served(t, "--listen", "0.0.0.0:0")
	_, port, _ := strings.Cut(strings.TrimPrefix(s.config.Host, "http://"), ":")
	if want := " (" + s.config.Host + " from here), with "; !strings.Contains(s.out.String(), ":"+port+want) || strings.Contains(s.out.String(), "at http://localhost") {
		t.Errorf("the address is not said: %s", s.out)
	}
	if !strings.Contains(s.err.String(), "may read and write everything there, without credentials: --listen 127.0.0.1:0") {
		t.Errorf("no warning: %s", s.err)
	}
	s.end(t)
	demo := run(t.Context(), "demo", "--for", "100ms", "--pods", "1", "--churn", "0", "--listen", "0.0.0.0:0")
	if demo.code != 0 || !strings.Contains(demo.err, "without credentials") || !strings.Contains(demo.out, "from here), built in") {
		t.Errorf("exit code %d: %s%s", demo.code, demo.err, demo.out)
	}
}
