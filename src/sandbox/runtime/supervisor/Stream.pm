# One stream of output of a command: its newest bytes, and where they lie in the whole.
#
# At most KEPT_BYTES are kept. While somebody reads, nothing is taken from the pipe that would push out what the slowest
# has not had: the command waits. While nobody does, the oldest go, so that the command goes on.
package Stream;
use strict;
use warnings;
use Errno qw(EAGAIN EINTR EIO);
use Kernel;
use Loop;

use constant {
    KEPT_BYTES  => 1024 * 1024,
    CHUNK_BYTES => 64 * 1024,
};

# `on_change`: there are more bytes, or there will be no more. `slowest`: how many bytes the slowest reader has had, or
# undef when nobody reads.
sub new {
    my ($class, %parts) = @_;
    fcntl($parts{handle}, Kernel::F_SETFL, Kernel::O_NONBLOCK) or die "a pipe that does not block: $!\n";
    my $self = bless {
        handle    => $parts{handle},
        on_change => $parts{on_change},
        slowest   => $parts{slowest},
        bytes     => "",
        start     => 0,
        is_watched => 0,
        # How many readers take from the pipe themselves.
        lent      => 0,
        # After the command's end: how many bytes it has left in the pipe.
        left      => undef,
        is_done   => 0,
    }, $class;
    $self->watch;
    return $self;
}

sub end_offset { my ($self) = @_; return $self->{start} + length $self->{bytes} }

# Up to so many bytes from an offset on; the offset must be in what is kept.
sub piece {
    my ($self, $offset, $most) = @_;
    return substr($self->{bytes}, $offset - $self->{start}, $most);
}

# To be called also when a reader has come, gone on, or left.
sub watch {
    my ($self) = @_;
    my $handle = $self->{handle} or return;
    my $wanted = !$self->{lent} && ($self->{is_done} || $self->_room > 0) ? 1 : 0;
    return if $wanted == $self->{is_watched};
    $self->{is_watched} = $wanted;
    Loop::watch($handle, $wanted ? sub { $self->_readable } : undef, undef);
    return;
}

# Nothing is taken from the pipe until it is given back: a reader does that without us. Where it is: our process, the
# descriptor, the number of the pipe, for by then the descriptor may be another's, and how many bytes we have taken.
# Nothing where there is no more to come.
sub lend {
    my ($self) = @_;
    my $handle = $self->{handle};
    return if !$handle || $self->{is_done} || defined $self->{left};
    $self->{lent}++;
    $self->watch;
    return ($$, fileno $handle, (stat $handle)[1], $self->end_offset);
}

# Whoever had it may not have taken all that the command left in it.
sub take_back {
    my ($self) = @_;
    $self->{lent}--;
    if ($self->{handle} && $self->{is_done} && $self->{left} && !$self->{lent}) {
        my $count = sysread($self->{handle}, $self->{bytes}, $self->{left}, length $self->{bytes});
        $self->{left} = 0;
        $self->_keep_newest if $count;
    }
    $self->watch;
    $self->{on_change}->();
    return;
}

sub _keep_newest {
    my ($self) = @_;
    my $excess = length($self->{bytes}) - KEPT_BYTES;
    if ($excess > 0) { substr($self->{bytes}, 0, $excess, ""); $self->{start} += $excess }
    return;
}

sub _room {
    my ($self) = @_;
    my $slowest = $self->{slowest}->();
    my $room = defined $slowest ? KEPT_BYTES - ($self->end_offset - $slowest) : CHUNK_BYTES;
    return $room < CHUNK_BYTES ? $room : CHUNK_BYTES;
}

# The command has ended. What it wrote is in the pipe, as much as the system says; what comes after that is of
# processes that it left behind, and nobody's.
sub command_ended {
    my ($self) = @_;
    return if $self->{is_done};
    my $count = pack("i", 0);
    $self->{left} = ioctl($self->{handle}, Kernel::FIONREAD, $count) ? unpack("i", $count) : 0;
    # Whoever has the pipe takes that.
    $self->_finish if $self->{left} == 0 || $self->{lent};
    return;
}

# There is no more, whatever comes.
sub end {
    my ($self) = @_;
    $self->close;
    $self->_finish if !$self->{is_done};
    return;
}

sub drop { my ($self) = @_; $self->{start} = $self->end_offset; $self->{bytes} = ""; return }

sub close {
    my ($self) = @_;
    my $handle = delete $self->{handle} or return;
    Loop::forget($handle);
    CORE::close($handle);
    return;
}

sub _finish {
    my ($self) = @_;
    $self->{is_done} = 1;
    $self->watch;
    $self->{on_change}->();
    return;
}

sub _readable {
    my ($self) = @_;
    return $self->_discard if $self->{is_done};
    my $most = $self->_room;
    $most = $self->{left} if defined $self->{left} && $self->{left} < $most;
    return $self->watch if $most <= 0;
    my $count = sysread($self->{handle}, $self->{bytes}, $most, length $self->{bytes});
    if (!defined $count) {
        return if $! == EAGAIN || $! == EINTR;
        # A terminal that nobody has open any more says EIO.
        warn "output of a command: $!\n" unless $! == EIO;
        $count = 0;
    }
    if ($count == 0) {
        $self->close;
        return $self->_finish;
    }
    $self->_keep_newest;
    if (defined $self->{left}) { $self->{left} -= $count }
    return $self->_finish if defined $self->{left} && $self->{left} <= 0;
    $self->{on_change}->();
    $self->watch;
    return;
}

sub _discard {
    my ($self) = @_;
    my $count = sysread($self->{handle}, my $bytes, CHUNK_BYTES);
    return if !defined $count && ($! == EAGAIN || $! == EINTR);
    $self->close if !$count;
    return;
}

1;
