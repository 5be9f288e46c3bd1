// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package apifault gives the errors of API servers a text that is the same each
// time the same goes wrong. API servers collect what is wrong from maps, so they
// tell it in another order each time; and connections that fail tell their local
// port. Such a text in a condition or event would make each retry a write.
package apifault

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Stable returns an error whose text is Text(err), and in whose place errors.Is
// and errors.As find err. It is nil if err is.
func Stable(err error) error {
	if err == nil {
		return nil
	}
	return &stable{err}
}

type stable struct{ err error }

func (s *stable) Error() string { return Text(s.err) }
func (s *stable) Unwrap() error { return s.err }

// status is an apierrors.APIStatus that is an error, too.
type status interface {
	error
	Status() metav1.Status
}

// Text returns the text of what an API client returned, or of an error that
// wraps that. It is best taken of the former, since what wraps it may be a list
// in an order that means something.
func Text(err error) string {
	text := err.Error()
	var answer status
	if errors.As(err, &answer) {
		if causes := causesOf(answer.Status()); len(causes) > 0 {
			listed := string(answer.Status().Reason) + ": " + strings.Join(causes, "; ")
			return strings.Replace(text, answer.Error(), strings.TrimPrefix(listed, ": "), 1)
		}
	}
	return ordered(steady(text))
}

// causesOf returns the causes that an API server found, sorted. An answer that
// is none of an API server's has a cause that its message explains better.
func causesOf(s metav1.Status) []string {
	if s.Details == nil {
		return nil
	}
	causes := make([]string, 0, len(s.Details.Causes))
	for _, cause := range s.Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			continue
		}
		text := ordered(steady(cause.Message))
		if cause.Field != "" {
			text = cause.Field + ": " + text
		}
		causes = append(causes, text)
	}
	slices.Sort(causes)
	return slices.Compact(causes)
}

var (
	// socket is the local end of a connection, whose port is another each time.
	socket = regexp.MustCompile(`(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:.]+(?:%\w+)?\]):\d+->`)
	// pointer is where something was in memory.
	pointer = regexp.MustCompile(`\b0x[0-9a-f]{8,16}\b`)
	// list is how Kubernetes joins errors in one line.
	list = regexp.MustCompile(`\[[^\[\]]*, [^\[\]]*\]`)
	// denial is what an API server puts before the first line of a webhook's.
	denial = regexp.MustCompile(`^(admission webhook "[^"]*" denied the request:) `)
)

func steady(text string) string {
	return pointer.ReplaceAllString(socket.ReplaceAllString(text, ""), "0x")
}

// ordered sorts what a text lists: the parts of a list in brackets, and lines. A
// first line that ends with a colon introduces the others.
func ordered(text string) string {
	text = list.ReplaceAllStringFunc(text, func(l string) string {
		return "[" + strings.Join(sorted(strings.Split(l[1:len(l)-1], ", ")), ", ") + "]"
	})
	if !strings.Contains(text, "\n") {
		return text
	}
	text = denial.ReplaceAllString(text, "$1\n")
	if head, rest, _ := strings.Cut(text, "\n"); strings.HasSuffix(head, ":") {
		return head + " " + strings.Join(sorted(strings.Split(rest, "\n")), "; ")
	}
	return strings.Join(sorted(strings.Split(text, "\n")), "; ")
}

// sorted returns the parts that say something, each once.
func sorted(parts []string) []string {
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	slices.Sort(parts)
	return slices.DeleteFunc(slices.Compact(parts), func(part string) bool { return part == "" })
}
