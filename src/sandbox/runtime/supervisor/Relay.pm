# Bytes between two connections, in both directions, each half ended by itself.
package Relay;
use strict;
use warnings;
use Errno qw(EAGAIN EINTR EINPROGRESS);
use Inside;
use Kernel;
use Loop;

use constant {
    CHUNK_BYTES => 64 * 1024,
    MOST        => 1024,
    LOOPBACK    => pack("C4", 127, 0, 0, 1),
    LOOPBACK_6  => pack("x15 C", 1),
};

my %relays;
my ($listener, $target);

# Joins the two; `$first` are bytes that have already been read from the left one.
sub join_up {
    my ($left, $right, $first) = @_;
    my $self = bless {
        ends => [$left, $right],
        # By the end that they came from.
        bytes  => [$first, ""],
        is_eof => [0, 0],
        is_shut => [0, 0],
        # Nobody reads at the other end any more.
        is_dropped => [0, 0],
    };
    for my $handle ($left, $right) { fcntl($handle, Kernel::F_SETFL, Kernel::O_NONBLOCK) or return }
    $relays{"$self"} = $self;
    $self->_move(0) && $self->_watch;
    return;
}

sub close_all {
    $_->_close for values %relays;
    if ($listener) { Loop::forget($listener); close $listener; undef $listener }
    return;
}

sub _watch {
    my ($self) = @_;
    for my $end (0, 1) {
        my $other = 1 - $end;
        Loop::watch(
            $self->{ends}[$end],
            !$self->{is_eof}[$end] && ($self->{is_dropped}[$end] || !length $self->{bytes}[$end]) ? sub { $self->_readable($end) } : undef,
            length $self->{bytes}[$other] ? sub { $self->_move($other) && $self->_watch } : undef,
        );
    }
    return;
}

sub _readable {
    my ($self, $end) = @_;
    my $count = sysread($self->{ends}[$end], $self->{bytes}[$end], CHUNK_BYTES);
    if (!defined $count) {
        return if $! == EAGAIN || $! == EINTR;
        # A process that ends with something unread says no more than one that has read all.
        return $self->_close unless is_unix($self->{ends}[$end]);
        $count = 0;
    }
    $self->{is_eof}[$end] = 1 if $count == 0;
    $self->{bytes}[$end] = "" if $self->{is_dropped}[$end];
    $self->_move($end) && $self->_watch;
    return;
}

# What came from this end goes to the other. False when all is over.
sub _move {
    my ($self, $end) = @_;
    my $to = $self->{ends}[1 - $end];
    if (length $self->{bytes}[$end]) {
        my $count = syswrite($to, $self->{bytes}[$end]);
        if    (defined $count) { substr($self->{bytes}[$end], 0, $count, "") }
        elsif ($! != EAGAIN && $! != EINTR) {
            $self->{bytes}[$end] = "";
            $self->{is_dropped}[$end] = 1;
        }
    }
    if ($self->{is_eof}[$end] && !length $self->{bytes}[$end] && !$self->{is_shut}[$end]) {
        $self->{is_shut}[$end] = 1;
        # Fails when it has gone altogether, which its reading tells.
        shutdown($to, 1);
    }
    return 1 unless $self->_is_over;
    $self->_close;
    return 0;
}

# To close a TCP connection with something unread, or to be sent something later, would destroy what is still on its way:
# so one is read to its end, though nobody wants it.
sub _is_over {
    my ($self) = @_;
    my $is_shut = $self->{is_shut};
    return 1 if $is_shut->[0] && $is_shut->[1];
    for my $end (0, 1) {
        return 1 if $is_shut->[1 - $end] && $self->{is_dropped}[$end] && is_unix($self->{ends}[$end]);
    }
    return 0;
}

sub is_unix {
    my ($handle) = @_;
    return unpack("S", getsockname($handle) // "\0\0") == Kernel::AF_UNIX;
}

sub _close {
    my ($self) = @_;
    delete $relays{"$self"};
    for my $handle (@{ $self->{ends} }) { Loop::forget($handle); close $handle }
    return;
}

# Every connection to this port of the machine's loopback goes to the socket of that path, or is closed at once when
# nobody listens there.
sub listen_inside {
    my ($port, $path) = @_;
    return 1 if $listener;
    $target = $path;
    my $made = Inside::in_network(sub {
        socket(my $socket, Kernel::AF_INET, Kernel::SOCK_STREAM, 0) or return;
        setsockopt($socket, Kernel::SOL_SOCKET, Kernel::SO_REUSEADDR, 1) or return;
        bind($socket, Kernel::inet_address($port, LOOPBACK)) or return;
        listen($socket, Kernel::BACKLOG) or return;
        return $socket;
    }) or return 0;
    fcntl($made, Kernel::F_SETFL, Kernel::O_NONBLOCK) or return 0;
    $listener = $made;
    Loop::watch($listener, \&_accept, undef);
    return 1;
}

sub _accept {
    accept(my $connection, $listener) or return;
    socket(my $node, Kernel::AF_UNIX, Kernel::SOCK_STREAM, 0) or return;
    # So that a full queue is a refusal, not a wait.
    fcntl($node, Kernel::F_SETFL, Kernel::O_NONBLOCK) or return;
    return if keys(%relays) >= MOST || !connect($node, Kernel::unix_address($target));
    join_up($connection, $node, "");
    return;
}

# Connects to a port inside: by version 4, and where nobody listens there by version 6. Calls the function with the
# handle, or with undef and the reason.
sub connect_inside {
    my ($port, $function) = @_;
    return $function->(undef, "too many connections") if keys(%relays) >= MOST;
    _connect(Kernel::AF_INET, Kernel::inet_address($port, LOOPBACK), sub {
        my ($handle, $reason) = @_;
        return $function->($handle) if $handle;
        _connect(Kernel::AF_INET6, Kernel::inet6_address($port, LOOPBACK_6), sub {
            $function->($_[0], $reason);
        });
    });
    return;
}

sub _connect {
    my ($family, $address, $function) = @_;
    my $handle = Inside::in_network(sub {
        socket(my $socket, $family, Kernel::SOCK_STREAM, 0) or return;
        return $socket;
    });
    return $function->(undef, "$!") if !$handle;
    fcntl($handle, Kernel::F_SETFL, Kernel::O_NONBLOCK) or return $function->(undef, "$!");
    return $function->($handle) if connect($handle, $address);
    return $function->(undef, "$!") if $! != EINPROGRESS;
    Loop::watch($handle, undef, sub {
        Loop::forget($handle);
        local $! = unpack("i", getsockopt($handle, Kernel::SOL_SOCKET, Kernel::SO_ERROR));
        my ($is_there, $reason) = ($! == 0, "$!");
        $is_there ? $function->($handle) : $function->(undef, $reason);
    });
    return;
}

1;
