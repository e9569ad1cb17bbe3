package client

import (
	"github.com/geniemq/geniemq/wire"
)

// Class is a kind of stored queries that workers keep apart from the others: see Options.
type Class = wire.Class

// The classes that a client may ask for.
const (
	ClassQuery = wire.ClassQuery
	ClassBulk  = wire.ClassBulk
)

func (o *Options) checkClass() error {
	if o.User != "" {
		if err := wire.CheckUser(o.User); err != nil {
			return err
		}
	}
	switch o.Class {
	case "", wire.ClassQuery, wire.ClassUsers, wire.ClassBulk:
		return nil
	}
	return wire.Errorf(wire.BadRequest, "%q is no class of stored queries: use %s or %s", o.Class, ClassQuery, ClassBulk)
}

// storedSubject is where queries for an index are published to.
func (c *Client) storedSubject(index string) string {
	return c.subjects.Stored(c.opts.Class, index, c.opts.User)
}

// searchSubject is where an index is searched directly.
func (c *Client) searchSubject(index string) string {
	if c.opts.User == "" {
		return c.subjects.Search(index)
	}
	return c.subjects.UserSearch(index, c.opts.User)
}

// replySubject is one of this client's subjects of results.
func (c *Client) replySubject(index, unique string) string {
	if c.opts.User == "" {
		return c.subjects.Reply(index, unique)
	}
	return c.subjects.UserResults(index, c.opts.User) + unique
}
