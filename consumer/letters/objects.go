package letters

import (
	"context"

	"github.com/geniemq/geniemq/bodystore"
	"github.com/geniemq/geniemq/wire"
)

// object is the object of a letter's query. It is false where there is none.
func (b *Box) object(l *Letter) (bodystore.Key, bool) {
	stored, err := wire.ParseStoredBody(l.Object)
	if err != nil {
		return bodystore.Key{}, false
	}
	_, _, user, ok := b.subjects.ParseStored(l.Subject)
	return bodystore.Key{User: user, Name: stored.Name}, ok
}

// fetch reads the body of a query from the object store, unless it is larger than any query may be.
func (b *Box) fetch(ctx context.Context, l *Letter) ([]byte, error) {
	stored, err := wire.ParseStoredBody(l.Object)
	if err == nil {
		err = wire.Limits{}.CheckBody(int(stored.Size))
	}
	if err != nil {
		return nil, err
	}
	key, _ := b.object(l)
	return b.bodies.Fetch(ctx, key.User, stored, make([]byte, 0, stored.Size))
}

// Objects are those that letters name: they must not be removed.
func (b *Box) Objects(ctx context.Context) (map[bodystore.Key]bool, error) {
	found, err := b.List(ctx, Choice{})
	if err != nil {
		return nil, err
	}
	objects := make(map[bodystore.Key]bool)
	for i := range found {
		if key, ok := b.object(&found[i]); ok {
			objects[key] = true
		}
	}
	return objects, nil
}
