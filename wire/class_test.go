package wire

import "testing"

// The subjects of a class are taken by its stream, by the durable of their index, and by no other; and are taken apart into what they were made of.
func TestSubjectsOfClasses(t *testing.T) {
	s := Subjects{}
	for _, user := range []string{"", "bob"} {
		for _, class := range StoredClasses() {
			if class == ClassUsers && user == "" || class == ClassQuery && user != "" {
				continue
			}
			subject := s.Stored(class, "people", user)
			got, index, who, ok := s.ParseStored(subject)
			if !ok || got != class || index != "people" || who != user {
				t.Errorf("%s is taken apart as %q %q %q %v", subject, got, index, who, ok)
			}
			for _, other := range StoredClasses() {
				streams, own, others := 0, 0, 0
				for _, pattern := range s.StreamSubjects(other) {
					if MatchSubject(pattern, subject) {
						streams++
					}
				}
				for _, pattern := range s.Filters(other, "people") {
					if MatchSubject(pattern, subject) {
						own++
					}
				}
				for _, pattern := range s.Filters(other, "words") {
					if MatchSubject(pattern, subject) {
						others++
					}
				}
				want := 0
				if other == class {
					want = 1
				}
				if streams != want || own != want || others != 0 {
					t.Errorf("%s: class %s takes it %d times, its durable %d, another index's %d", subject, other, streams, own, others)
				}
			}
		}
	}
	for _, subject := range []string{"genie.query", "genie.query.a.b.c", "genie.search.people", "other.query.people", "genie.query..x", "genie.bulk."} {
		if _, _, _, ok := s.ParseStored(subject); ok {
			t.Errorf("%s is taken apart", subject)
		}
	}
	if CheckUser("bob-1") != nil || CheckUser("") == nil || CheckUser("a.b") == nil || CheckUser(">") == nil {
		t.Error("users' tokens are not what they should be")
	}
	if s.Stream(ClassBulk) != "GENIE_BULK" || s.Stream(ClassUsers) != "GENIE_USERS" || s.Stream(ClassQuery) != "GENIE_QUERIES" {
		t.Error("the streams have other names")
	}
	if got := s.UserResult("people", "bob"); got != "genie.result.people.bob.answers" || !MatchSubject("genie.result.people.bob.>", got) {
		t.Error(got)
	}
}
