// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package function installs and runs Functions, and follows them.
//
// Four controllers share the work:
//
//   - The closer closes the connection to a function when the Function or a revision of it changes, so that the next call goes to
//     where the function is now, at once, even if it could not be reached a moment ago. The XRs that use the function are woken
//     by package composite.
//   - The installer gives each Function a FunctionRevision for its image, decides which revisions are active, deletes old ones,
//     and leads the Service that is named after the Function to the revision in force.
//   - The runner gives each active FunctionRevision that the installer made its ServiceAccount, Service, certificate and
//     Deployment, and states its endpoint once a pod of that is available.
//   - The trustee keeps the certificate authority and the operator's own certificate.
//
// The last three run only if the operator runs functions itself; otherwise FunctionRevisions are somebody else's.
//
// An upgrade fails no call, since at each moment a revision is in force whose Deployment runs: the older one stays active until the
// newer has an endpoint, which it gets when a pod of it is available; and a revision that became inactive keeps its Deployment
// for the Drain, longer than any call takes.
package function
