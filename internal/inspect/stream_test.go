// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

const eventually = 30 * time.Second

func parse(t *testing.T, destination string) Destination {
	t.Helper()
	d, err := ParseDestination(destination)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// start the stream. stop ends it, and waits until it has ended.
func start(t *testing.T, s *Stream) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	return func() {
		t.Helper()
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Start: %v", err)
			}
		case <-time.After(eventually):
			t.Fatal("the stream does not end")
		}
	}
}

// roundOf is a round of that number, whose request has about that many bytes.
func roundOf(t testing.TB, n, bytes int) function.Inspection {
	t.Helper()
	xr := &structpb.Struct{Fields: map[string]*structpb.Value{
		"apiVersion": structpb.NewStringValue("example.org/v1"),
		"kind":       structpb.NewStringValue("Greeting"),
		"spec":       structpb.NewStringValue(strings.Repeat("x", bytes)),
	}}
	return function.Inspection{
		XR: types.NamespacedName{Namespace: "team-a", Name: "hello"}, Kind: greeting, Step: "greet", Function: "greeter", Round: n,
		Request: encode(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}}}),
	}
}

var greeting = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Greeting"}

func encode(t testing.TB, message *fnv1.RunFunctionRequest) *function.Request {
	t.Helper()
	req, err := function.NewRequest(message)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func encodeResponse(t testing.TB, message *fnv1.RunFunctionResponse) []byte {
	t.Helper()
	encoded, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// shown is what tests read of a line.
type shown struct {
	Round    int
	TooLarge bool
	Dropped  int
}

func readLine(t *testing.T, text string) shown {
	t.Helper()
	var l shown
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatalf("%v: %.200q", err, text)
	}
	return l
}

func readFile(t *testing.T, path string) (lines []string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
}

// A viewer listens on a socket.
type viewer struct {
	t        *testing.T
	listener net.Listener
}

func listen(t *testing.T, path string) *viewer {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return &viewer{t: t, listener: l}
}

// accept waits for the stream.
func (v *viewer) accept() net.Conn {
	v.t.Helper()
	if err := v.listener.(*net.UnixListener).SetDeadline(time.Now().Add(eventually)); err != nil {
		v.t.Fatal(err)
	}
	conn, err := v.listener.Accept()
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(eventually)); err != nil {
		v.t.Fatal(err)
	}
	return conn
}

// lines reads that many of them.
func (v *viewer) lines(from *bufio.Reader, n int) []shown {
	v.t.Helper()
	var all []shown
	for range n {
		text, err := from.ReadString('\n')
		if err != nil {
			v.t.Fatal(err)
		}
		all = append(all, readLine(v.t, text))
	}
	return all
}

func TestARoundIsALineOfTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rounds.jsonl")
	s := NewStream(parse(t, "file:"+path), logr.Discard())
	stop := start(t, s)
	i := roundOf(t, 2, 1)
	i.Kept, i.Err = true, errors.New("it <failed>")
	i.Began, i.Duration = time.Date(2026, 3, 4, 5, 6, 7, 8_000_000, time.FixedZone("", 3600)), 1500*time.Microsecond
	s.Inspect(i)
	i.Round, i.Kept, i.Err = 3, false, nil
	i.Response = encodeResponse(t, &fnv1.RunFunctionResponse{Results: []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_NORMAL, Message: "done"}}})
	s.Inspect(i)
	stop()

	const head = `{"time":"2026-03-04T04:06:07.008Z","xr":{"apiVersion":"example.org/v1","kind":"Greeting","namespace":"team-a","name":"hello"},` +
		`"step":"greet","function":"greeter",`
	const request = `"request":{"observed":{"composite":{"resource":{"apiVersion":"example.org/v1","kind":"Greeting","spec":"x"}}}},`
	want := []string{
		head + `"round":2,"tag":"` + i.Request.Tag() + `","kept":true,"durationSeconds":0.0015,` + request + `"error":"it <failed>"}`,
		head + `"round":3,"tag":"` + i.Request.Tag() + `","kept":false,"durationSeconds":0.0015,` + request +
			`"response":{"results":[{"message":"done","severity":"SEVERITY_NORMAL"}]}}`,
	}
	if diff := cmp.Diff(want, readFile(t, path)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("want a file that only its owner may read, got %s", info.Mode())
	}
}

func TestAFileIsAppendedToAfterEndingWhatWasNotEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rounds.jsonl")
	for content, want := range map[string]int{"": 1, "{}\n": 2, "{}\n{\"half": 3} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s := NewStream(parse(t, "file:"+path), logr.Discard())
		s.Inspect(roundOf(t, 1, 1))
		start(t, s)()
		lines := readFile(t, path)
		if len(lines) != want || readLine(t, lines[len(lines)-1]).Round != 1 {
			t.Errorf("after %q want %d lines, the last of which is round 1, got %q", content, want, lines)
		}
	}
}

func TestWhatIsQueuedIsWrittenAtTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rounds.jsonl")
	s := NewStream(parse(t, "file:"+path), logr.Discard())
	for n := range 100 {
		s.Inspect(roundOf(t, n, 1))
	}
	before := testutil.ToFloat64(droppedTotal)
	start(t, s)() // ended as soon as it has started
	s.Inspect(roundOf(t, 100, 1))
	if lines := readFile(t, path); len(lines) != 100 {
		t.Errorf("want 100 lines, got %d", len(lines))
	}
	if dropped := testutil.ToFloat64(droppedTotal) - before; dropped != 1 {
		t.Errorf("want the round after the end dropped, got %v", dropped)
	}
}

func TestAFileThatCannotBeWrittenIsTriedAgainAndLoggedOnce(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "later")
	path := filepath.Join(folder, "rounds.jsonl")
	var mu sync.Mutex
	var logged []string
	log := funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		logged = append(logged, args)
	}, funcr.Options{})
	s := NewStream(parse(t, "file:"+path), log)
	stop := start(t, s)
	s.Inspect(roundOf(t, 1, 1))
	waitFor(t, "an error that is logged", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(logged) > 0
	})
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a line", func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() > 0
	})
	stop()
	if len(logged) != 2 || !strings.Contains(logged[0], "no such file") || !strings.Contains(logged[1], "again") {
		t.Errorf("want one failure and one recovery logged, got %q", logged)
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(eventually)
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("no sign of %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestAViewerThatStallsHoldsNothingUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "viewer.sock")
	v := listen(t, path)
	s := NewStream(parse(t, "unix:"+path), logr.Discard())
	stop := start(t, s)
	v.accept() // and reads nothing, ever

	before := testutil.ToFloat64(droppedTotal)
	const all = 4 * maxRounds
	var slowest time.Duration
	for n := range all {
		began := time.Now()
		s.Inspect(roundOf(t, n, 20<<10))
		slowest = max(slowest, time.Since(began))
	}
	if slowest > time.Second { // a write would wait for ever
		t.Errorf("Inspect took up to %s", slowest)
	}
	if testutil.ToFloat64(droppedTotal) == before {
		t.Error("no round was dropped")
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > 3*flushTime {
		t.Errorf("the stream took %s to end", took)
	}
	if dropped := testutil.ToFloat64(droppedTotal) - before; dropped < all-100 || dropped > all {
		t.Errorf("want nearly all of %d rounds dropped, and none twice, got %v", all, dropped)
	}
}

func TestAViewerIsToldOfWhatItMissed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "viewer.sock")
	v := listen(t, path)
	s := NewStream(parse(t, "unix:"+path), logr.Discard())
	stop := start(t, s)
	conn := v.accept()
	before := testutil.ToFloat64(droppedTotal)
	const all = 3 * maxRounds
	for n := range all {
		s.Inspect(roundOf(t, n, 2<<10))
	}
	want := int(testutil.ToFloat64(droppedTotal) - before)

	from, seen, missed := bufio.NewReader(conn), 0, 0
	for seen+missed < all {
		l := v.lines(from, 1)[0]
		if l.Dropped > 0 {
			missed += l.Dropped
			continue
		}
		if l.Round != seen+missed {
			t.Fatalf("want round %d in its turn, after %d that were seen and %d that were missed, got %d", seen+missed, seen, missed, l.Round)
		}
		seen++
	}
	if missed != want || missed == 0 {
		t.Errorf("want %d rounds told as dropped, got %d", want, missed)
	}
	stop()
}

func TestAViewerMayComeLateAndGoAndComeBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "viewer.sock")
	s := NewStream(parse(t, "unix:"+path), logr.Discard())
	stop := start(t, s)
	s.Inspect(roundOf(t, 1, 1))

	late := listen(t, path)
	conn := late.accept()
	if got := late.lines(bufio.NewReader(conn), 1); got[0].Round != 1 {
		t.Errorf("want the round from before the viewer came, got %v", got)
	}
	if err := errors.Join(conn.Close(), late.listener.Close()); err != nil {
		t.Fatal(err)
	}
	s.Inspect(roundOf(t, 2, 1))

	back := listen(t, path)
	conn = back.accept()
	s.Inspect(roundOf(t, 3, 1))
	got := back.lines(bufio.NewReader(conn), 2)
	if diff := cmp.Diff([]shown{{Round: 2}, {Round: 3}}, got); diff != "" {
		t.Errorf("after the viewer is back (-want +got):\n%s", diff)
	}
	stop()
}
