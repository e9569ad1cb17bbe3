package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/wire"
)

// demo connects to geniemq, which serves an index of five words here.
func demo() *nats.Conn {
	url, err := startDemo()
	if err != nil {
		log.Fatal(err)
	}
	nc, err := nats.Connect(url)
	if err != nil {
		log.Fatal(err)
	}
	return nc
}

// Ask a worker directly: the lowest latency, nothing stored.
func ExampleClient_Search() {
	nc := demo()
	defer nc.Close()
	c, err := client.New(nc, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	result, err := c.Search(ctx, "words", client.Query{Text: "recive", K: 2})
	switch {
	case errors.Is(err, wire.Overloaded), errors.Is(err, client.ErrNotServed):
		fmt.Println("later, perhaps")
	case err != nil:
		log.Fatal(err)
	default:
		for _, hit := range result.Hits {
			fmt.Println(hit.Key, hit.Distance)
		}
	}
	// Output:
	// receive 1
	// recipe 1
}

// Ask about many queries in one message. Each has its own result, or its own error.
func ExampleClient_SearchBatch() {
	nc := demo()
	defer nc.Close()
	c, err := client.New(nc, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	results, err := c.SearchBatch(context.Background(), "words", []client.Query{
		{Text: "recive", K: 1},
		{Row: client.Conditions(client.Equal("sex", "Female"))},
		{Text: "beleive", K: 1},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			fmt.Println(r.Err)
			continue
		}
		fmt.Println(r.Hits[0].Key)
	}
	// Output:
	// receive
	// bad_request: attribute "sex" is not in index words (it has word)
	// believe
}

// Ask through the stream and wait: nothing that restarts in between loses the query or its answer.
func ExampleClient_Request() {
	nc := demo()
	defer nc.Close()
	c, err := client.New(nc, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	result, err := c.Request(context.Background(), "words", client.Query{Text: "retrive", K: 1, Certify: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Hits[0].Key, result.Hits[0].Distance, result.Exact)
	// Output: retrieve 1 true
}

func ExampleClient_RequestBatch() {
	nc := demo()
	defer nc.Close()
	c, err := client.New(nc, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	results, err := c.RequestBatch(context.Background(), "words", []client.Query{
		{Text: "recipee", K: 1}, {Text: "beleive", K: 1},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Println(r.Hits[0].Key)
	}
	// Output:
	// recipe
	// believe
}

// Store a query and go on. A message id of your own makes it safe to publish the same query again.
func ExampleClient_Publish() {
	nc := demo()
	defer nc.Close()
	c, err := client.New(nc, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	query := client.Query{ID: "word 7", Text: "recive"}
	for range 2 {
		receipt, err := c.Publish(context.Background(), "words", query,
			client.PublishOptions{MsgID: "my-service.word-7", Reply: "genie.result.words.my-service"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(receipt.Stream, receipt.Duplicate)
	}
	// Output:
	// GENIE_QUERIES false
	// GENIE_QUERIES true
}

// Store queries as one message, with the answer on a subject of your own.
func ExampleClient_PublishBatch() {
	nc := demo()
	defer nc.Close()
	c, err := client.New(nc, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	answered := make(chan struct{})
	sub, err := c.Subscribe(context.Background(), "genie.result.words.spelling", func(a *client.Answer) error {
		fmt.Println(a.Subject, len(a.Results), a.Results[1].Hits[0].Key)
		close(answered)
		return nil
	}, client.SubscribeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer sub.Stop()

	_, err = c.PublishBatch(context.Background(), "words",
		[]client.Query{{Text: "recipee"}, {Text: "beleive"}},
		client.PublishOptions{Reply: "genie.result.words.spelling"})
	if err != nil {
		log.Fatal(err)
	}
	<-answered
	// Output: genie.result.words.spelling 2 believe
}

// Receive the results of an index, whoever asked. A durable goes on where it was after a restart, and processes that
// use the same name share the work.
func ExampleClient_Subscribe() {
	nc := demo()
	defer nc.Close()
	c, err := client.New(nc, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	answered := make(chan struct{})
	sub, err := c.Subscribe(context.Background(), "words", func(a *client.Answer) error {
		fmt.Println(a.QueryID, a.Results[0].Hits[0].Key)
		close(answered)
		return nil // acknowledged; an error would have it delivered again
	}, client.SubscribeOptions{Durable: "spelling-report"})
	if err != nil {
		log.Fatal(err)
	}
	defer sub.Stop()

	if _, err := c.Publish(context.Background(), "words", client.Query{ID: "q1", Text: "recive"}, client.PublishOptions{}); err != nil {
		log.Fatal(err)
	}
	<-answered
	// Output: q1 receive
}

// Conditions on a table.
func ExampleConditions() {
	q := client.Query{ID: "q1", K: 10, Row: client.Conditions(
		client.Between("age", 30, 40),
		client.Equal("sex", "Female"),
		client.Weighted(2, client.AnyOf("state", "WA", "OR")),
		client.AtLeast("hours", 20.5),
	)}
	fmt.Println(string(wire.AppendQuery(nil, wire.JSON, &q)))
	// Output:
	// {"id":"q1","k":10,"row":{"age":{"min":30,"max":40},"sex":"Female","state":{"in":["WA","OR"],"weight":2},"hours":{"min":20.5}}}
}

// Ask for everything within a distance, and how much that is.
func ExampleWithin() {
	nc := demo()
	defer nc.Close()
	c, err := client.New(nc, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	result, err := c.Search(ctx, "words", client.Query{Text: "recive", Near: client.Within(1), Total: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.InRange, "within")
	for _, hit := range result.Hits {
		fmt.Println(hit.Key, hit.Distance)
	}
	// Unordered output:
	// 2 within
	// receive 1
	// recipe 1
}
