package client

import "time"

// LoseInboxes drops the subscriptions that answers arrive on, as if the network lost every message.
func (c *Client) LoseInboxes() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sub := range c.inboxes {
		_ = sub.Unsubscribe()
	}
}

// LookSoon shortens the time before a request looks into the stream.
func (c *Client) LookSoon() { c.firstLook, c.lastLook = 20*time.Millisecond, 40*time.Millisecond }

// Waiting returns how many requests wait.
func (c *Client) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}
