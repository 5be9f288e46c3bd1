// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package faults is a reverse proxy that stands between a client and an API
// server, and makes the ways to fail that networks and API servers have happen
// on demand:
//
//	proxy, err := faults.Start(operatorConfig, seed)
//	if err != nil {
//		return err
//	}
//	defer proxy.Stop()
//	go app.Run(ctx, proxy.Config(), options)
//
//	proxy.Down()                   // refuses connections, breaks open ones
//	err = proxy.Up()
//	proxy.Cut(faults.MidObject, nil) // ends all open watches, now
//
//	storm := proxy.Inject(faults.Fault{Status: 429, RetryAfter: time.Second, Share: 0.5})
//	storm.Heal()
//	if storm.Hits() == 0 { ... }   // nothing was hit: the test shows nothing
//
// What a client sends is passed on as it is, its credentials included, over
// HTTP/2 where the client speaks it; watches stream. The proxy listens on
// loopback at one address, which stays the same, and reserved, while it is down.
//
// A [Fault] is limited to the requests that its predicate picks:
//
//	| fault                        | what the client sees                                        |
//	|------------------------------|-------------------------------------------------------------|
//	| Down                         | connections refused; open ones end at once                  |
//	| Fault{Hang: true}            | no answer, and nothing more of an open watch, until healed, |
//	|                              | when both break                                             |
//	| Fault{Delay: d}              | each answer comes that much later                           |
//	| Fault{Status: code}          | that error, as an API server words it, without the server   |
//	|                              | having been asked                                           |
//	| Fault{Lose: true}            | the connection breaks after the server has done its work    |
//	| Fault{Status: 410,           | watches and paged lists can't go on: as after a compaction. |
//	|   On: Continuing}            | Open watches go on until they are Cut                       |
//	| Cut(Regularly)               | the watches that are open end as they do now and then       |
//	| Cut(Abruptly), Cut(MidObject)| the connections of open watches break, between two events   |
//	|                              | or in the midst of one                                      |
//
// Faults act in the order in which they were injected, until one of them ends
// the request; so a delay and a status can be had together. Shares are drawn from
// one sequence that the seed determines: the n-th draw is always the same, and
// which request is the n-th is up to the client.
package faults
