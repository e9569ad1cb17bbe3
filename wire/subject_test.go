package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestSubjects(t *testing.T) {
	var def Subjects
	other, err := NewSubjects("acme-2")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ got, want string }{
		{def.Query("adult"), "genie.query.adult"},
		{def.Queries(), "genie.query.*"},
		{def.Result("adult"), "genie.result.adult"},
		{def.Reply("adult", "u"), "genie.result.adult.u"},
		{def.Results(), "genie.result.>"},
		{def.Dead("adult"), "genie.dead.adult"},
		{def.DeadAll(), "genie.dead.*"},
		{def.Search("adult"), "genie.search.adult"},
		{def.QueryStream(), "GENIE_QUERIES"},
		{def.ResultStream(), "GENIE_RESULTS"},
		{def.DeadStream(), "GENIE_DEAD"},
		{def.Durable("adult"), "geniemq-adult"},
		{other.Query("adult"), "acme-2.query.adult"},
		{other.QueryStream(), "ACME-2_QUERIES"},
		{other.Durable("adult"), "acme-2mq-adult"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
	for _, bad := range []string{"a.b", "Genie", "a b", "*", ">", strings.Repeat("x", 33), "é"} {
		if _, err := NewSubjects(bad); err == nil {
			t.Errorf("prefix %q was accepted", bad)
		}
	}
}

func TestCheckIndexName(t *testing.T) {
	for _, good := range []string{"a", "Adult_2-x", strings.Repeat("x", 64)} {
		if err := CheckIndexName(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "a.b", "a b", "*", ">", "é", "a\n", strings.Repeat("x", 65)} {
		if err := CheckIndexName(bad); !errors.Is(err, BadRequest) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestValidateReplySubject(t *testing.T) {
	allow := []string{"_INBOX.>", Subjects{}.Results(), "acme.*.in"}
	long := "_INBOX." + strings.Repeat("x", 255-len("_INBOX."))
	for _, good := range []string{"_INBOX.abc", "_INBOX.a.b.c", "genie.result.adult", "genie.result.adult.u.1", "acme.x.in", long} {
		if err := ValidateReplySubject(good, allow); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{
		"", "_INBOX", "_INBOX.", "_INBOX..a", ".a", "genie.result.*", "genie.result.>", "genie.result.a b", "genie.result.a\tb",
		"genie.result.a\r\nPUB x", "genie.result.a\x00", "genie.query.adult", "genie.resultx.a", "acme.in", "acme.x.y.in", "acme.x.in.y", "$JS.API.INFO", long + "x",
	} {
		if err := ValidateReplySubject(bad, allow); !errors.Is(err, BadRequest) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := ValidateReplySubject("_INBOX.a", nil); err == nil {
		t.Error("an empty allow-list allowed something")
	}
}

func TestCheckSubjectPattern(t *testing.T) {
	for _, good := range []string{"a", "a.*", "a.>", ">", "*", "_INBOX.>"} {
		if err := CheckSubjectPattern(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "a..b", ".a", "a.", "a b", ">.a", "a.>.b"} {
		if err := CheckSubjectPattern(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestParseContentType(t *testing.T) {
	for header, want := range map[string]ContentType{
		"": JSON, "application/json": JSON, "application/json; charset=utf-8": JSON, "Application/JSON;charset=UTF-8": JSON,
		"application/json;charset": JSON, "application/msgpack": MessagePack, "application/x-msgpack": MessagePack,
		"application/vnd.msgpack; v=1": MessagePack,
	} {
		if got, err := ParseContentType(header); err != nil || got != want {
			t.Errorf("%q: got %v, %v", header, got, err)
		}
	}
	for _, header := range []string{"text/plain", "application/cbor", "json", ";"} {
		if _, err := ParseContentType(header); !errors.Is(err, Unsupported) {
			t.Errorf("%q: %v", header, err)
		}
	}
}

func TestCheckProtocol(t *testing.T) {
	for header, want := range map[string]error{
		"": nil, "1": nil, " 1 ": nil, "2": Unsupported, "999": Unsupported, "0": BadRequest, "-1": BadRequest, "x": BadRequest, "1.0": BadRequest,
	} {
		if err := CheckProtocol(header); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", header, err, want)
		}
	}
}

func TestHeaderID(t *testing.T) {
	for id, want := range map[string]string{"q1": "q1", "é": "é", "a\nb": "", "a\rb": "", "\x7f": "", strings.Repeat("x", 256): ""} {
		if got := HeaderID(id); got != want {
			t.Errorf("%q: got %q", id, got)
		}
	}
}
