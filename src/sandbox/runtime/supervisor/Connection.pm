# A connection of the node: messages in both directions. A message is a 32-bit length in network order, then as many
# bytes of fields; a field is a 32-bit length and its bytes.
package Connection;
use strict;
use warnings;
use Errno qw(EAGAIN EINTR);
use Loop;

use constant {
    # Arguments and environment of a command, at most.
    MAX_MESSAGE_BYTES => 8 * 1024 * 1024,
    # So much waits here to be sent before whoever sends waits.
    FULL_BYTES  => 256 * 1024,
    CHUNK_BYTES => 64 * 1024,
};

# `on_message` gets the connection and the fields. `on_gone` is called once, when it is a connection no more. Whoever
# has it may also set `on_close`, which is called when it has been closed, by whichever side, and `on_room`.
sub new {
    my ($class, %parts) = @_;
    my $self = bless {
        handle     => $parts{handle},
        on_message => $parts{on_message},
        on_gone    => $parts{on_gone},
        on_close   => undef,
        on_room    => undef,
        in         => "",
        out        => "",
        reading    => 1,
        ending     => 0,
    }, $class;
    $self->_watch;
    return $self;
}

sub _watch {
    my ($self) = @_;
    return if !$self->{handle};
    Loop::watch(
        $self->{handle},
        $self->{reading}     ? sub { $self->_readable } : undef,
        length($self->{out}) ? sub { $self->_writable } : undef,
    );
    return;
}

sub is_open { return defined $_[0]{handle} }
sub is_full { return length($_[0]{out}) >= FULL_BYTES }

sub send_message {
    my ($self, @fields) = @_;
    return if !$self->{handle};
    my $was_empty = length($self->{out}) == 0;
    $self->{out} .= pack("N/a*", pack("(N/a*)*", @fields));
    # Nothing waits: it goes out at once, without another round of the loop.
    if ($was_empty && $self->_flush) { $self->_watch }
    return;
}

# Whether the next message is to be taken.
sub set_reading {
    my ($self, $reading) = @_;
    return if $self->{reading} == $reading;
    $self->{reading} = $reading;
    $self->_watch;
    # What has arrived meanwhile waits in our memory, where nobody announces it.
    $self->_take if $reading;
    return;
}

# Closes it when everything has been sent.
sub end {
    my ($self) = @_;
    $self->{ending} = 1;
    $self->close if length($self->{out}) == 0;
    return;
}

sub close {
    my ($self) = @_;
    my $handle = delete $self->{handle} or return;
    Loop::forget($handle);
    CORE::close($handle);
    my ($on_gone, $on_close) = @$self{qw(on_gone on_close)};
    @$self{qw(on_message on_gone on_close on_room)} = ();
    $on_gone->();
    $on_close->() if $on_close;
    return;
}

# The handle, for whoever goes on with it in a way of its own; with the bytes that have already been read from it.
sub detach {
    my ($self) = @_;
    my $handle = delete $self->{handle};
    Loop::forget($handle);
    my $on_gone = $self->{on_gone};
    @$self{qw(on_message on_gone on_close on_room)} = ();
    $on_gone->();
    return ($handle, $self->{in});
}

sub _readable {
    my ($self) = @_;
    my $count = sysread($self->{handle}, $self->{in}, CHUNK_BYTES, length $self->{in});
    if (!defined $count) {
        return if $! == EAGAIN || $! == EINTR;
        return $self->close;
    }
    return $self->close if $count == 0;
    $self->_take;
    return;
}

sub _take {
    my ($self) = @_;
    while ($self->{handle} && $self->{reading} && length($self->{in}) >= 4) {
        my $length = unpack("N", $self->{in});
        return $self->close if $length > MAX_MESSAGE_BYTES;
        last if length($self->{in}) < 4 + $length;
        my @fields = unpack("(N/a*)*", substr($self->{in}, 4, $length));
        substr($self->{in}, 0, 4 + $length, "");
        $self->{on_message}->($self, @fields);
    }
    return;
}

sub _writable {
    my ($self) = @_;
    $self->_flush or return;
    if ($self->{on_room} && !$self->is_full) { $self->{on_room}->() }
    $self->_watch;
    return;
}

# False when it has been closed over that.
sub _flush {
    my ($self) = @_;
    my $count = syswrite($self->{handle}, $self->{out});
    if (defined $count) { substr($self->{out}, 0, $count, "") }
    elsif ($! != EAGAIN && $! != EINTR) { $self->close; return 0 }
    if ($self->{ending} && length($self->{out}) == 0) { $self->close; return 0 }
    return 1;
}

1;
