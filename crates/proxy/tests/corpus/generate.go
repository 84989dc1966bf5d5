//go:build ignore

// Writes the answers of the Go libraries that kube-rbac-proxy is built on, one JSON file per
// question, for the tests beside it to hold our own implementations against.
//
// Run it from a module that requires sigs.k8s.io/yaml and github.com/spf13/pflag:
//
//	go run generate.go <directory to write to>
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"text/template"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func write(name string, rows any) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(rows); err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(os.Args[1], name+".json"), out.Bytes(), 0o644); err != nil {
		panic(err)
	}
}

type globRow struct {
	Pattern, Name string
	Match         bool
	Error         string
}

func globs() {
	patterns := []string{
		"", "*", "/*", "/api/*", "/api/*/x", "/metrics", "/v0/*", "a*b", "*a", "a*", "**", "/**", "*?", "?*", "a?c",
		"[a-z]", "[^a-z]", "[a-]", "[-a]", "[", "[]", "[]a]", "[a", "[a-", "[^", "[^]", "[x-x]", "[a-cx-z]", `[\]]`, `[\-]`, `[a\-z]`,
		`\a`, `\*`, `\`, `a\`, `*\`, "*[", "a[", "[[]", "[a]*[b]", "/a/*/b/*", "*/*", "a*/b", "*x", "*x*y*", "*/x",
		"é*", "[é-ï]", "??", "日*", "*[^a]*z", "*[/]*z", "*?/*", "[日-本]", "/label/*/values", "{a,b}", "/a[/]b", "/a?b", "[^/]", "a[b-d]e", "[!a]", "[a^]", "[^^]",
		"[\\", "[a\\", "[z-a]", "[a-b-c]", "x[]", "*[a]b", "*[^a]", "*\\*", "a**b", "*a*a*a*a*b",
	}
	names := []string{
		"", "/", "a", "b", "ab", "abc", "aXc", "a/c", "/api", "/api/", "/api/a", "/api/a/b", "/api//x", "/api/../x", "/api/a/x",
		"/metrics", "/metrics/", "/v0/healthz", "/v0", "/v0/", "]", "-", "^", "[", `\`, "*", "a*", "x", "xx", "z", "é", "éa", "日本", "本",
		"/label/job/values", "/label/a/b/values", "/a/1/b/2", "/a/b", "ace", "abe", "{a,b}", "!", "ba", "axby", "aaaaaaaaab", "aaaaaaaaaa", "/x", "q/x", "x/yz", "a/z", "aébb",
	}
	rows := []globRow{}
	for _, pattern := range patterns {
		for _, name := range names {
			match, err := path.Match(pattern, name)
			telling := match || len(pattern)+len(name) < 4
			if err != nil {
				// A malformed pattern is so for every name: three are enough to show it.
				telling = name == "" || name == "a" || name == "/api/a"
			}
			if telling {
				rows = append(rows, globRow{pattern, name, match, text(err)})
			}
		}
	}
	write("glob", rows)
}

type cleanRow struct{ Path, Clean string }

func cleans() {
	rows := []cleanRow{}
	for _, p := range []string{
		"", "/", "//", "/.", "/..", "/a", "/a/", "/a//", "//a", "/a//b", "/a/./b", "/a/../b", "/../a", "/a/..", "/a/.", "/a/b/../..",
		"/a/b/../../..", "a", "a/b", "./a", "../a", "*", "/...", "/a/.../b", "/.a", "/a./b", "/a/..b", "/a/./", "/a/../", "/a/%2e%2e/b", "/a%2fb",
		"//a//b//", "/a/b/./../c/", "///", "/./", "/../",
	} {
		// What net/http's ServeMux redirects to: cleaned, rooted, the trailing slash kept.
		clean := p
		if clean == "" {
			clean = "/"
		} else {
			if clean[0] != '/' {
				clean = "/" + clean
			}
			np := path.Clean(clean)
			if clean[len(clean)-1] == '/' && np != "/" {
				np += "/"
			}
			clean = np
		}
		rows = append(rows, cleanRow{p, clean})
	}
	write("clean", rows)
}

type queryRow struct {
	Query  string
	Values url.Values
	Error  string
}

func queries() {
	rows := []queryRow{}
	for _, q := range []string{
		"", "a", "a=", "=a", "=", "a=b", "a=b&a=c", "a=b&c=d", "a=b;c=d", "a=b&c;d=e&f=g", "a=%20b", "a=+b", "a%20b=c", "a=%", "a=%2", "a=%zz", "a=%zz&b=c",
		"%zz=a&b=c", "a=b&", "&a=b", "&&", "a=b&&c=d", "a==b", "a=b=c", "a=%3B", "a%3bb=c", "a=%26b", "a=%2B", "a=%C3%A9", "a=%ff", "a=é", "A=1&a=2",
		"a=1;a=2", "a=%00", "namespace=x&namespace=y", "a+b=c+d", ";", "a;b", "a=b&;&c=d", "%", "%&a=b", "a=%4", "a=%4g&a=ok", "?a=b", "a=b?c", "a=#", "a=%25",
	} {
		values, err := url.ParseQuery(q)
		rows = append(rows, queryRow{q, values, text(err)})
	}
	write("query", rows)
}

type durationRow struct {
	Text        string
	Nanoseconds int64
	Error       string
}

func durations() {
	rows := []durationRow{}
	for _, d := range []string{
		"0", "+0", "-0", "1s", "1m30s", "500ms", "1h", "1.5h", ".5s", "5.s", "1h1m1s1ms1us1ns", "1µs", "1μs", "-1s", "+1s", "-1m30s", "", "1", "s", ".", "-", "1x", "1 s", " 1s", "1s ",
		"1d", "9223372036854775807ns", "9223372036854775808ns", "-9223372036854775808ns", "2562047h", "2562048h", "0.000000001s", "0.0000000001s", "1e3s", "1.2.3s", "10s5", "1ss", "1m1m",
		"0.1h", "0.3333333333333333333h", "9007199254.740993ms", "1S", "--1s", "3000000h", "100000000000000000000ns", ".s", "\"", "1\x00",
	} {
		duration, err := time.ParseDuration(d)
		rows = append(rows, durationRow{d, int64(duration), text(err)})
	}
	write("duration", rows)
}

type csvRow struct {
	Values []string
	Result []string
	Error  string
}

func csvs() {
	rows := []csvRow{}
	for _, values := range [][]string{
		{""}, {"a"}, {"a,b"}, {"a, b"}, {"a,"}, {",a"}, {","}, {`"a,b",c`}, {`"a""b"`}, {`a"b`}, {`"a`}, {`"a"b`}, {`"a" ,b`}, {` "a"`}, {"a", "b,c"}, {"a", ""}, {"", "a"},
		{"a\nb"}, {"\na"}, {"\n"}, {"\"a\nb\""}, {"a\r\nb"}, {"\"a\r\nb\""}, {`""`}, {`"",""`}, {"a\rb"}, {"a,\"b\"\nc"}, {`"a"",b`}, {"é\"x"}, {"\r\n\r\na"}, {"a\r"}, {`x,"`},
	} {
		flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
		slice := flags.StringSlice("list", nil, "")
		args := []string{}
		for _, value := range values {
			args = append(args, "--list="+value)
		}
		err := flags.Parse(args)
		rows = append(rows, csvRow{values, *slice, text(err)})
	}
	write("csv", rows)
}

type flagRow struct {
	Args  []string
	Seen  map[string]string
	Rest  []string
	Error string
}

func flagGrammar() {
	rows := []flagRow{}
	for _, args := range [][]string{
		{}, {"--text=a"}, {"--text", "a"}, {"--text"}, {"--text="}, {"--text", ""}, {"--text=a=b"}, {"--text", "--switch"}, {"--switch"}, {"--switch=false"}, {"--switch", "false"}, {"--switch=f"}, {"--switch=0"},
		{"--switch=T"}, {"--switch=TRUE"}, {"--switch=yes"}, {"--switch="}, {"--some_name=x"}, {"--some-name=x"}, {"--some_name", "x"}, {"--unknown"}, {"--unknown=x"}, {"--"}, {"--", "--text=a"}, {"-"}, {"---x"}, {"--=x"},
		{"-x"}, {"-xy"}, {"-v=3"}, {"-v3"}, {"-v", "3"}, {"-v"}, {"-vx"}, {"--number=5"}, {"--number=x"}, {"--number="}, {"--number=0x10"}, {"--number=1_000"}, {"--number=9223372036854775808"}, {"--number=-3"},
		{"--small=5"}, {"--small=-1"}, {"--small=4294967296"}, {"--small=x"}, {"--large=18446744073709551616"}, {"--rate=0.5"}, {"--rate=x"}, {"--rate=1e3"}, {"--rate=1e99"}, {"--wait=1m"}, {"--wait=1"}, {"--wait=x"},
		{"--array=a,b"}, {"--array=a", "--array=b"}, {"word"}, {"--text=a", "word", "--switch"}, {"--text=a", "--text=b"}, {"--Switch"}, {"--switch=true", "--switch=false"}, {"-s"}, {"-é"}, {"--number=08"}, {"--number=0o17"}, {"--rate=0x1p4"}, {"--rate=inf"}, {"--rate=1_0"}, {"--rate=0x_1p4"},
	} {
		flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
		flags.SetOutput(&bytes.Buffer{})
		flags.SetNormalizeFunc(func(f *pflag.FlagSet, name string) pflag.NormalizedName {
			return pflag.NormalizedName(bytes.ReplaceAll([]byte(name), []byte("_"), []byte("-")))
		})
		flags.String("text", "", "")
		flags.String("some-name", "", "")
		flags.Bool("switch", false, "")
		flags.Int32P("v", "v", 0, "")
		flags.Int("number", 0, "")
		flags.Uint32("small", 0, "")
		flags.Uint64("large", 0, "")
		flags.Float32("rate", 0, "")
		flags.Duration("wait", 0, "")
		flags.StringArray("array", []string{"default"}, "")
		err := flags.Parse(args)
		seen := map[string]string{}
		flags.Visit(func(f *pflag.Flag) { seen[f.Name] = f.Value.String() })
		rows = append(rows, flagRow{args, seen, flags.Args(), text(err)})
	}
	write("flags", rows)
}

type configFile struct {
	Authorization *struct {
		Rewrites *struct {
			ByQueryParameter *struct {
				Name string `json:"name,omitempty"`
			} `json:"byQueryParameter,omitempty"`
			ByHTTPHeader *struct {
				Name string `json:"name,omitempty"`
			} `json:"byHttpHeader,omitempty"`
		} `json:"rewrites,omitempty"`
		ResourceAttributes *struct {
			Namespace   string `json:"namespace,omitempty"`
			APIGroup    string `json:"apiGroup,omitempty"`
			APIVersion  string `json:"apiVersion,omitempty"`
			Resource    string `json:"resource,omitempty"`
			Subresource string `json:"subresource,omitempty"`
			Name        string `json:"name,omitempty"`
		} `json:"resourceAttributes,omitempty"`
		Static []struct {
			User struct {
				Name   string   `json:"name,omitempty"`
				Groups []string `json:"groups,omitempty"`
			}
			Verb            string `json:"verb,omitempty"`
			Namespace       string `json:"namespace,omitempty"`
			APIGroup        string `json:"apiGroup,omitempty"`
			Resource        string `json:"resource,omitempty"`
			Subresource     string `json:"subresource,omitempty"`
			Name            string `json:"name,omitempty"`
			ResourceRequest bool   `json:"resourceRequest,omitempty"`
			Path            string `json:"path,omitempty"`
		} `json:"static,omitempty"`
	} `json:"authorization,omitempty"`
}

type yamlRow struct {
	Document string
	Config   any
	Fails    bool
}

func yamls() {
	documents := []string{
		"", "{}", "null", "---\n", "# nothing\n", "authorization:\n", "authorization: {}\n", "authorization: null\n", "other: 1\n", "[]", "x", "1", "authorization: x\n", "authorization: []\n",
		"authorization: {resourceAttributes: {namespace: x}}", "AUTHORIZATION: {ResourceAttributes: {NameSpace: x, apigroup: y}}", "authorization: {resourceAttributes: {group: x}}",
		"authorization: {resourceAttributes: {namespace: a, namespace: b}}", "authorization: {resourceAttributes: {namespace: a, Namespace: b}}", "authorization: {resourceAttributes: {Namespace: a, namespace: b}}",
		"authorization: {static: [{resourceRequest: yes}]}", "authorization: {static: [{resourceRequest: on}]}", "authorization: {static: [{resourceRequest: \"true\"}]}", "authorization: {static: [{resourceRequest: 1}]}",
		"authorization: {static: [{resourceRequest: y, user: {name: a, groups: [b, c]}}]}", "authorization: {static: [{user: {groups: b}}]}", "authorization: {static: [{user: {groups: [1, yes, ~, 1.5]}}]}", "authorization: {static: {}}", "authorization: {static: [a]}",
		"authorization: {static: [~]}", "authorization: {static: ~}", "authorization: {rewrites: {byQueryParameter: {name: n}, byHttpHeader: {name: x-tenant}}}", "authorization: {rewrites: {}}", "authorization: {rewrites: ~, resourceAttributes: ~}",
		"a: &x {namespace: q}\nauthorization: {resourceAttributes: *x}\n", "base: &b {namespace: q, name: z}\nauthorization:\n  resourceAttributes:\n    <<: *b\n    name: y\n",
		"authorization:\n  resourceAttributes:\n    namespace: a\n---\nauthorization:\n  resourceAttributes:\n    namespace: b\n", "authorization:\n\tresourceAttributes: {}\n", "authorization: {resourceAttributes: {namespace: [a]}}", "authorization: {resourceAttributes: {namespace: {a: b}}}",
		"authorization: {resourceAttributes: {1: a, yes: b, ~: c}}", "authorization: {resourceAttributes: {1: a, yes: b, 1.5: c}}", "authorization: {resourceAttributes: {? [a] : b}}", "{", "a: b: c", "authorization: *x",
	}
	for _, scalar := range []string{
		"abc", "123", "0123", "0x1F", "0b101", "-0b11", "0o17", "1_000", "1__0", "+5", "-5", "1.0", "1.50", "1e3", "1.5e10", ".5", "5.", "1e", "0.1", "1e400", "123456789", "12345678.9", "9223372036854775808", "18446744073709551615",
		"18446744073709551616", "y", "Y", "n", "N", "yes", "Yes", "YES", "yEs", "no", "on", "ON", "off", "true", "True", "tRue", "false", "~", "null", "Null", "nUll", "", ".inf", "-.inf", ".nan", "0", "00", "08", "09.5", "0x", "1:30", "2001-01-01", "2001-01-01T00:00:00Z",
		`"123"`, `'yes'`, `"n"`, `!!str 123`, `!!str yes`, `!!int "5"`, `!!bool "yes"`, `!!float 5`, `!!int yes`, `!custom 5`, `! 5`, "!!null x", "!!binary aGk=", "!!timestamp 2001-01-01", "=", "<<", "-", "1 2", "'{{ .Value }}'", "v1", "1.", "-.5", "+.5", "._5", "1_", "_1", "-", "1e5", "1E5", "100000000000000000000000", "1e21", "16777217.0", "0.000001", "0.0000001", "3.4e39", "-0", "-0.0", "1e-7", "1000000.0", "123456.7", "1234567.5", "0.00001234",
		"|\n      text", ">\n      a\n      b", "0x8000000000000000", "-9223372036854775808", "-9223372036854775809", "0X1f", "0B1", "0O7", "1e+3", ".e5", "1.e5", "0_7", "infinity", "nan", "+.inf", "0x_1", "0b_1",
	} {
		documents = append(documents, "authorization:\n  resourceAttributes:\n    name: "+scalar+"\n")
	}
	rows := []yamlRow{}
	for _, document := range documents {
		config := configFile{}
		err := yaml.Unmarshal([]byte(document), &config)
		row := yamlRow{document, config, err != nil}
		if err != nil {
			row.Config = nil
		}
		rows = append(rows, row)
	}
	write("yaml", rows)
}

type urlRow struct {
	Text, Scheme, Host, Path, Query, Error string
}

func urls() {
	rows := []urlRow{}
	for _, text := range []string{
		"", "http://127.0.0.1:8081/", "http://127.0.0.1:8081", "https://host/prefix?x=1", "host", "host:80", "127.0.0.1:80", "/path", "http://", "http:///x", "http://[::1]:80/", "http://[::1", "http://[::1]x", "http://h:x/", "http://h:80x", "http://h:/",
		"http://a b/", "http://a%zz/", "http://h/%zz", "http://h/a b", ":x", "1http://x", "ht!tp://x", "http://h/\x7f", "\x01", "http://u:p@h/", "http://h/?a=%zz", "http://h#f", "unix:///run/x.sock", "unix:///run/x.sock:/prefix", "HTTP://H/", "http:opaque", "http://h/a%2fb", "a:b", "a/b:c", "http://h?q", "http://<x>/", "http://h/#%zz", "//host/x", "http://[fe80::1%25en0]:80/", "http://h:99999/",
	} {
		parsed, err := url.Parse(text)
		row := urlRow{Text: text}
		if err != nil {
			row.Error = err.Error()
		} else {
			row.Scheme, row.Host, row.Path, row.Query = parsed.Scheme, parsed.Host, parsed.EscapedPath(), parsed.RawQuery
		}
		rows = append(rows, row)
	}
	write("url", rows)
}

type templateRow struct{ Template, Value, Result, Error string }

func templates() {
	rows := []templateRow{}
	for _, source := range []string{
		"", "literal", "{{ .Value }}", "{{.Value}}", "a-{{ .Value }}-b", "{{ .Value }}{{ .Value }}", "a {{- .Value -}} b", "a {{- .Value }} b", "{{ .Value -}}\n b", "{{ printf \"%s\" .Value }}", "{{ printf \"%s-%s\" .Value .Value }}", "{{ printf `%s` .Value }}",
		"{{ .Value | printf \"%s\" }}", "{{ .Other }}", "{{ .Value }", "{{ .Value", "}}", "{ .Value }", "{{}}", "{{ }}", "{{ \"x\" }}", "{{/* c */}}", "{{- /* c */ -}}", "{{ if .Value }}a{{ end }}", "{{ .Value.X }}", "{{ $x := .Value }}{{ $x }}", "{{-.Value}}", "{{.Value-}}", "{{- .Value}}",
		"{{ printf \"x\" }}", "{{ printf \"%d\" .Value }}", "{{ printf \"%%\" }}", "{{\t.Value\t}}", "{{\n.Value\n}}", "{{(.Value)}}", "{{ . }}", "{{{ .Value }}}", "{{ .value }}", "{{ printf \"pre-%s\" .Value }}", "a{{ `b` }}c", "{{ .Value}} {{- \"x\"}}",
	} {
		row := templateRow{Template: source, Value: "v<1>"}
		compiled, err := template.New("t").Parse(source)
		if err == nil {
			var out bytes.Buffer
			err = compiled.Execute(&out, struct{ Value string }{row.Value})
			row.Result = out.String()
		}
		row.Error = text(err)
		rows = append(rows, row)
	}
	write("template", rows)
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate.go <directory>", strconv.Itoa(len(os.Args)))
		os.Exit(2)
	}
	globs()
	cleans()
	queries()
	durations()
	csvs()
	flagGrammar()
	yamls()
	urls()
	templates()
}
