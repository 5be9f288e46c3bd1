// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// address is a port of this machine's loopback that nobody else can get while it is
// reserved, whether anybody listens there or not. Without that, a client that
// tries to connect in vain would in time be given the very port as its own.
type address struct {
	// socket is bound and never listens. It makes the kernel refuse connections
	// to the port, and lets those bind to it who may reuse it, as Go's listeners
	// may.
	socket int
	port   int
}

func reserve() (*address, error) {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot make a socket: %w", os.NewSyscallError("socket", err))
	}
	port, err := bind(socket)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot reserve a port: %w", err), syscall.Close(socket))
	}
	return &address{socket: socket, port: port}, nil
}

func bind(socket int) (port int, err error) {
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	inet, ok := bound.(*syscall.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("the socket was bound to a %T", bound)
	}
	return inet.Port, nil
}

// String is the address as host:port.
func (a *address) String() string { return fmt.Sprintf("127.0.0.1:%d", a.port) }

func (a *address) listen() (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp4", a.String())
	if err != nil {
		return nil, fmt.Errorf("cannot listen at %s: %w", a, err)
	}
	return listener, nil
}

func (a *address) release() error {
	if err := syscall.Close(a.socket); err != nil {
		return fmt.Errorf("cannot release %s: %w", a, os.NewSyscallError("close", err))
	}
	return nil
}
